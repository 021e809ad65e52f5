/** A message in the form that goes to a partition. */
export interface KafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly key: Buffer;
  readonly value: Buffer;
  readonly headers: Map<Buffer, Buffer>;
}

interface Numbered {
  readonly index: number;
  readonly record: KafkaRecord;
  readonly bytes: number;
}

/** What goes to one partition, in order. The client makes one batch of all that it is given, so its size is bounded here. */
export class PartitionQueue {
  readonly partition: number;
  /**
   * It shares no request with other partitions. If a broker has forgotten the producer on one of them, the client sends
   * the whole request again under another producer id, and what the others had taken is there twice.
   */
  isAlone = false;
  readonly #maxBytes: number;
  readonly #records: Numbered[] = [];
  #next = 0;
  #front = 0;
  #most = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(partition: number, maxBytes: number) {
    this.partition = partition;
    this.#maxBytes = maxBytes;
  }

  add(index: number, record: KafkaRecord): void {
    let bytes = record.key.length + record.value.length + 32;
    for (const [name, value] of record.headers) bytes += name.length + value.length + 4;
    this.#records.push({ index, record, bytes });
  }

  get isOpen(): boolean {
    return !this.#stopped && this.#next < this.#records.length;
  }

  /** The next batch: at least one message, however large it is. */
  front(): readonly Numbered[] {
    let bytes = 0;
    let end = this.#next;
    while (end < this.#records.length && end - this.#next < this.#most) {
      bytes += this.#records[end]?.bytes ?? 0;
      if (end > this.#next && bytes > this.#maxBytes) break;
      end += 1;
    }
    this.#front = end - this.#next;
    return this.#records.slice(this.#next, end);
  }

  /** The front and everything after it. */
  left(): readonly Numbered[] {
    return this.#records.slice(this.#next);
  }

  /** The front is finished. */
  taken(): void {
    this.#next += this.#front;
    this.#most = Number.POSITIVE_INFINITY;
  }

  /** The front was too large for the topic. */
  halve(): void {
    this.#most = Math.max(1, Math.floor(this.#front / 2));
  }

  /** What follows must not overtake the front. */
  stop(): void {
    this.#stopped = true;
  }
}
