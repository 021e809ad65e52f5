import { randomFinishes } from "./claim-operations.ts";
import { type Operation, operation } from "./operation.ts";
import { lease, namedRemainderMs, shortLease, stepMs } from "./time.ts";
import { owners, type World } from "./world.ts";

const partitions = 3;
/** Asked for once in a while, which only the first time changes anything. */
const more = 7;

export function acquireOperation(world: World): Operation {
  const { chance } = world;
  const owner = chance.pick(owners);
  const leaseMs = chance.pick([lease, shortLease]);
  const want = chance.below(3);
  const asked = chance.oneIn(30) ? more : partitions;
  return operation(
    "acquirePartitions",
    () => ({ owner, leaseMs, partitions: asked, want }),
    async (store, params) => {
      const grants = await store.acquirePartitions(params);
      if (store === world.first) {
        for (const { partition, epoch, named } of grants) {
          world.grants.push({ owner, partition, epoch });
          world.remember(owner, named);
        }
        world.grants.splice(0, world.grants.length - 6);
      }
      return grants;
    },
  );
}

/** Mostly a grant that was given, which may be stale by now. */
function randomGrant(world: World) {
  const { chance } = world;
  const grant = chance.pickFrom(world.grants) ?? { owner: "o1", partition: 0, epoch: 1 };
  if (chance.oneIn(10)) return { ...grant, epoch: grant.epoch + chance.pick([-1, 1]) };
  return chance.oneIn(10) ? { ...grant, owner: chance.pick(owners) } : grant;
}

export function holdOperation(world: World): Operation {
  const { owner, partition, epoch } = randomGrant(world);
  const held = [{ partition, epoch }];
  if (world.chance.oneIn(4)) {
    return operation(
      "releasePartitions",
      () => ({ owner, held }),
      (store, params) => store.releasePartitions(params),
    );
  }
  return operation(
    "renewPartitions",
    () => ({ owner, held, leaseMs: lease }),
    (store, params) => store.renewPartitions(params),
  );
}

export function partitionDueOperation(world: World): Operation {
  const partition = world.chance.below(more + 1);
  const limit = world.chance.pick([1, 100]);
  const aheadMs = world.chance.pick([0, 8 * stepMs]);
  const isPaged = world.chance.oneIn(2);
  return operation(
    "partitionDue",
    () => ({ partition, aheadMs, limit, after: null }),
    // The order inside a place is each store's own, so it is only ever given back to the store that gave it.
    async (store, params) => {
      const { last, ...first } = await store.partitionDue(params);
      if (!isPaged || last === null) return [first];
      const { last: _, ...second } = await store.partitionDue({ ...params, after: last });
      return [first, second];
    },
  );
}

export async function checkpointOperation(world: World): Promise<Operation> {
  const { chance } = world;
  const { owner, partition, epoch } = randomGrant(world);
  const relayed = (await world.jobs()).filter((job) => job.relayed || chance.oneIn(10));
  const name = chance.some(relayed).map(({ id, version }) => ({
    id,
    version: chance.oneIn(10) ? version + 1 : version,
  }));
  const settled = randomFinishes(world);
  const marked = chance.oneIn(2);
  const aheadMs = chance.pick([0, 8 * stepMs]);
  const markMs = world.nowMs + namedRemainderMs;
  return operation(
    "checkpoint",
    (at) => ({ owner, partition, epoch, settled, mark: marked ? at(markMs) : null, name, aheadMs }),
    async (store, params) => {
      const answer = await store.checkpoint(params);
      if (store === world.first) world.remember(owner, answer.named);
      return answer;
    },
  );
}
