// One process of a race: one contestant, one discipline, one run. It is asked by its argument and answers by a message.

import { contestants } from "./contestants/index.ts";
import { perform, type Task } from "./disciplines.ts";

const task: Task = JSON.parse(process.argv[2] ?? "");
const contestant = contestants[task.ground.store].find(({ name }) => name === task.contestant);
if (contestant === undefined) throw new Error(`no contestant ${task.contestant} on ${task.ground.store}`);

const measurement = await perform(contestant, task);
if (measurement !== null) process.send?.(measurement, () => process.exit(0));
