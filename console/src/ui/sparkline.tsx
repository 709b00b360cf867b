// A small chart: an area over time, scaled to its largest value.

export interface ChartPoint {
  readonly atMs: number;
  readonly value: number;
}

const width = 240;
const height = 44;

export function Sparkline({
  points,
  label,
  fromMs,
  toMs,
  isBad = false,
}: {
  readonly points: readonly ChartPoint[];
  readonly label: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly isBad?: boolean;
}) {
  const top = Math.max(1, ...points.map(({ value }) => value));
  const x = (atMs: number): number => ((atMs - fromMs) / (toMs - fromMs)) * width;
  const y = (value: number): number => height - 2 - (value / top) * (height - 6);
  const inside = points.filter(({ atMs }) => atMs >= fromMs);
  const [only] = inside;
  // One point alone would not be visible.
  const drawn =
    inside.length === 1 && only !== undefined
      ? [{ ...only, atMs: only.atMs - (toMs - fromMs) / 40 }, only]
      : inside;
  const line = drawn.map(({ atMs, value }) => `${x(atMs).toFixed(1)},${y(value).toFixed(1)}`);
  const [first] = inside;
  const last = inside.at(-1);
  const tone = isBad ? 'text-bad' : 'text-accent';
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
      className={`block h-11 w-full ${tone}`}
    >
      <line
        x1="0"
        x2={width}
        y1={height - 1.5}
        y2={height - 1.5}
        className="stroke-line"
        strokeWidth="1"
        vectorEffect="non-scaling-stroke"
      />
      {first === undefined || last === undefined ? null : (
        <>
          <polygon
            points={`${x(first.atMs).toFixed(1)},${height - 2} ${line.join(' ')} ${x(last.atMs).toFixed(1)},${height - 2}`}
            fill="currentColor"
            opacity="0.12"
          />
          <polyline
            points={line.join(' ')}
            fill="none"
            stroke="currentColor"
            strokeWidth="1.5"
            strokeLinejoin="round"
            vectorEffect="non-scaling-stroke"
          />
        </>
      )}
    </svg>
  );
}
