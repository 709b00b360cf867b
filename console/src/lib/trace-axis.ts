// The time axis of a trace: long idle times are folded, because a flow may wait for hours between milliseconds of work.

export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

interface Gap extends Interval {
  /** In percent of the width. */
  readonly left: number;
  readonly width: number;
}

export interface TraceAxis {
  /** The place of a time, in percent of the width. */
  at(ms: number): number;
  readonly gaps: readonly Gap[];
}

/** The width of a folded gap, in percent. */
const gapWidth = 6;
const gapMsMin = 250;

export function traceAxis(intervals: readonly Interval[]): TraceAxis {
  const busy = merged(intervals);
  const first = busy[0]?.fromMs ?? 0;
  const last = busy.at(-1)?.toMs ?? 0;
  const busyMs = busy.reduce((sum, { fromMs, toMs }) => sum + (toMs - fromMs), 0);
  const idle = busy
    .slice(1)
    .map(({ fromMs }, at) => ({ fromMs: busy[at]?.toMs ?? 0, toMs: fromMs }));
  const foldFrom = Math.max(gapMsMin, 3 * busyMs);
  const folded = idle.filter(({ fromMs, toMs }) => toMs - fromMs > foldFrom);
  const foldedMs = folded.reduce((sum, { fromMs, toMs }) => sum + (toMs - fromMs), 0);
  const workMs = last - first - foldedMs;
  const shownMs = Math.max(1, workMs);
  // Without any work the gaps have the whole width.
  const isIdle = workMs < 1 && folded.length > 0;
  const perMs = isIdle ? 0 : Math.max(20, 100 - folded.length * gapWidth) / shownMs;
  const widthOfGap = (100 - perMs * shownMs) / Math.max(1, folded.length);

  const at = (ms: number): number => {
    let x = 0;
    let from = first;
    for (const gap of folded) {
      if (ms <= gap.fromMs) break;
      x += (gap.fromMs - from) * perMs;
      from = gap.toMs;
      if (ms < gap.toMs) return x + ((ms - gap.fromMs) / (gap.toMs - gap.fromMs)) * widthOfGap;
      x += widthOfGap;
    }
    return Math.min(100, Math.max(0, x + (ms - from) * perMs));
  };
  return {
    at,
    gaps: folded.map((gap) => ({ ...gap, left: at(gap.fromMs), width: widthOfGap })),
  };
}

/** Overlapping intervals as one. */
function merged(intervals: readonly Interval[]): readonly Interval[] {
  const result: { fromMs: number; toMs: number }[] = [];
  for (const { fromMs, toMs } of intervals.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const open = result.at(-1);
    if (open !== undefined && fromMs <= open.toMs) open.toMs = Math.max(open.toMs, toMs);
    else result.push({ fromMs, toMs });
  }
  return result;
}
