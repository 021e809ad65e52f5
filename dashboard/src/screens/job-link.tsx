import type { VNode } from "preact";
import type { JobStory } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { Text } from "../parts/text.tsx";
import { jobPath } from "../router.ts";

interface Props {
  readonly id: string;
  readonly name?: string;
  /** Whether to ask for the name where it is not given. */
  readonly isNamed?: boolean;
}

/** A link to a job, with its name where that is known or can be had. */
export function JobLink({ id, name, isNamed = false }: Props): VNode {
  const { data } = useQuery<JobStory>(isNamed && name === undefined ? jobPath(id) : null);
  const known = name ?? data?.job.name;
  return (
    <a href={jobPath(id)}>
      {known !== undefined && (
        <>
          <Text value={known} most={60} />{" "}
        </>
      )}
      <span class="mono small">
        <Text value={id} most={60} />
      </span>
    </a>
  );
}
