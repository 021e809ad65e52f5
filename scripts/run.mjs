// Every npm script starts here, on whatever Node the machine has: `node scripts/run.mjs <arguments for Node 24>`.
// This file must parse and link on very old versions, so that they get the line below and not a stack trace.

const oldest = 18;

if (Number(process.versions.node.split(".")[0]) < oldest) {
  console.error(
    `escapement: found Node ${process.version}, but its scripts need Node ${oldest} or newer to set themselves up; install Node 24 and run the command again.`,
  );
  process.exit(1);
}

void import("./launch.mjs").then(({ launch }) => launch(process.argv.slice(2)));
