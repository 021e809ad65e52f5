export interface BarRow {
  readonly title: string;
  readonly bars: readonly { readonly name: string; readonly value: number }[];
}

const width = 760;
const left = 150;
const right = 90;
const barHeight = 16;
const gap = 4;
const rowGap = 30;

/** Ours in a strong colour, the others in a quiet one; each row has its own scale, since what counts is who is ahead in it. */
export function bars(title: string, rows: readonly BarRow[]): string {
  let y = 44;
  const parts: string[] = [];
  for (const row of rows) {
    parts.push(text(16, y, row.title, "row"));
    y += 10;
    const most = Math.max(...row.bars.map(({ value }) => (Number.isNaN(value) ? 0 : value)), 1);
    for (const [place, { name, value }] of row.bars.entries()) {
      const length = Number.isNaN(value) ? 0 : Math.max(1, (value / most) * (width - left - right));
      const label = Number.isNaN(value) ? "could not run" : Math.round(value).toLocaleString("en-US");
      parts.push(
        text(left - 8, y + 12, name, "name"),
        `<rect x="${left}" y="${y}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" class="${place === 0 ? "ours" : "theirs"}"/>`,
        text(left + length + 6, y + 12, label, "value"),
      );
      y += barHeight + gap;
    }
    y += rowGap;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="${escaped(title)}">
<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-size: 14px; font-weight: 600; fill: #24292f }
.row { font-weight: 600; fill: #24292f }
.name { text-anchor: end }
.ours { fill: #1a7f5a }
.theirs { fill: #afb8c1 }
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } .title, .row { fill: #e6edf3 } .ours { fill: #3fb984 } .theirs { fill: #57606a } }
</style>
${text(16, 22, title, "title")}
${parts.join("\n")}
</svg>
`;
}

function text(x: number, y: number, value: string, kind: string): string {
  return `<text x="${x.toFixed(1)}" y="${y}" class="${kind}">${escaped(value)}</text>`;
}

function escaped(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
