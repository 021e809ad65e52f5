/** How long before the end of its lease a holder stops: twice the time between two checks of it. */
export function safetyMarginMs(leaseMs: number): number {
  return leaseMs / 5;
}

/**
 * How much must be left of a claim's lease when it is started: enough to see the next heartbeat renew it before the
 * holder would have to stop. That is one heartbeat away, and a tenth of the lease is for the trips of the one in flight
 * and of the next.
 */
export function startingMarginMs(leaseMs: number, heartbeatMs: number): number {
  return safetyMarginMs(leaseMs) + heartbeatMs + leaseMs / 10;
}
