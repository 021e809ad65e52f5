/** Which stream holds the messages of a shard; a single one keeps its plain name. */
export function streamOf(stream: string, shard: number, shards: number): string {
  return shards === 1 ? stream : `${stream}:{${shard}}`;
}

/** The streams of all shards. */
export function streamsOf(stream: string, shards: number): string[] {
  return Array.from({ length: shards }, (_, shard) => streamOf(stream, shard, shards));
}
