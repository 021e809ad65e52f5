// The worker process of the backlog bench. It runs the build, as users do: a Node that strips types needs some 40 MB for that alone.

const [index = "", address = "", concurrency = "", most = ""] = process.argv.slice(2);
const { createEscapement, defineJob } = await import(index);

const total = Number(most);
/** The first jobs warm up: connections, plans, and the compiler. */
const warmUp = Math.floor(total / 10);
const rssMb = () => process.memoryUsage.rss() / 2 ** 20;
const samples = [];
let jobs = 0;
let from = { ms: 0, cpu: process.cpuUsage() };

const job = defineJob({
  name: "scale",
  run() {
    jobs += 1;
    if (jobs === warmUp) {
      from = { ms: performance.now(), cpu: process.cpuUsage() };
      process.send("warm");
    }
    if (jobs % Math.ceil(total / 10) === 0) samples.push(rssMb());
    if (jobs === total) report();
  },
});
const app = createEscapement({ store: address, jobs: [job], concurrency: Number(concurrency) });

function report() {
  const ms = performance.now() - from.ms;
  const { user, system } = process.cpuUsage(from.cpu);
  const done = { jobs: total - warmUp, ms, cpuMs: (user + system) / 1_000, rssMb: samples };
  process.send(done, async () => {
    await app.stop();
    process.send(jobs, () => process.disconnect());
  });
}

await app.start();
