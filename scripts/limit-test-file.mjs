// Loaded into each test file. The runner's own timeout ends a test, but waits for ever for a file that leaves something open.

const limitMs = 15 * 60_000;

if (process.env.NODE_TEST_CONTEXT !== undefined) {
  setTimeout(() => {
    console.error(
      `still open after ${limitMs / 60_000} minutes: ${process.getActiveResourcesInfo().join(", ")}`,
    );
    process.exit(1);
  }, limitMs).unref();
}
