import assert from "node:assert/strict";
import { test } from "node:test";
import { withSection } from "./page-section.ts";

test("a section is added at the end, and then takes its own place again", () => {
  const two = withSection(withSection("", "one", "first\n"), "two", "second");
  assert.equal(
    two,
    "<!-- one -->\nfirst\n<!-- end of one -->\n\n<!-- two -->\nsecond\n<!-- end of two -->\n",
  );
  assert.equal(withSection(two, "one", "anew"), two.replace("first", "anew"));
  assert.equal(withSection(`# Page\n\n${two}`, "two", "anew"), `# Page\n\n${two.replace("second", "anew")}`);
});
