/** What one job costs, as a drain by one process shows it. */
export interface Costs {
  /** Processor time of the worker's process for each job, threads included. */
  readonly workerUs: number;
  /** Processor time of all server processes for each job. */
  readonly serverUs: number;
}

/** What the jobs are worked off on. */
export interface Machinery {
  readonly processes: number;
  /** How many threads of the server can work at the same time: one for each Redis node, one for each connection on Postgres. */
  readonly serverThreads: number;
  readonly cores: number;
}

/** The highest rate that each part allows, and what it is. */
export interface Prediction {
  readonly jobsPerSecond: number;
  readonly limitedBy: "worker processes" | "server" | "cores";
}

/** A process runs JavaScript on one thread, a server on so many, and both share the machine's cores. */
export function predict(
  { workerUs, serverUs }: Costs,
  { processes, serverThreads, cores }: Machinery,
): Prediction {
  const limits: Prediction[] = [
    { limitedBy: "worker processes", jobsPerSecond: (processes * 1e6) / workerUs },
    { limitedBy: "server", jobsPerSecond: (serverThreads * 1e6) / serverUs },
    { limitedBy: "cores", jobsPerSecond: (cores * 1e6) / (workerUs + serverUs) },
  ];
  return limits.reduce((lowest, limit) => (limit.jobsPerSecond < lowest.jobsPerSecond ? limit : lowest));
}
