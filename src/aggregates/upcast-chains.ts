// Upcasters put in line at definition time: every older type has exactly one way to a known one.

import { parseEventType } from '../contracts/event-type.ts';
import type { Upcaster } from './upcast.ts';

/** Thrown upwards as `AGGREGATE_INVALID`; the caller knows which aggregate it is about. */
export type Complain = (reason: string) => Error;

/** By the stored type, the steps to take; the last one leads to a type in `known`. */
export function chainUpcasters(
  known: { has(type: string): boolean },
  upcasters: readonly Upcaster[],
  complain: Complain,
): ReadonlyMap<string, readonly Upcaster[]> {
  const steps = new Map<string, Upcaster>();
  for (const step of upcasters) {
    if (known.has(step.from)) {
      throw complain(`'${step.from}' is upcast, so it cannot be one of the events as well`);
    }
    if (steps.has(step.from)) throw complain(`'${step.from}' is upcast twice`);
    steps.set(step.from, step);
  }
  for (const step of upcasters) checkVersions(step, { known, steps, complain });
  return new Map(upcasters.map(({ from }) => [from, walk(from, { known, steps, complain })]));
}

interface Chains {
  readonly known: { has(type: string): boolean };
  readonly steps: ReadonlyMap<string, Upcaster>;
  readonly complain: Complain;
}

function walk(start: string, { known, steps, complain }: Chains): readonly Upcaster[] {
  const taken: Upcaster[] = [];
  for (let type = start; !known.has(type);) {
    const step = steps.get(type);
    if (step === undefined) {
      throw complain(`'${start}' is upcast to '${type}', which is no event and leads nowhere`);
    }
    if (taken.includes(step)) throw complain(`the upcasters of '${start}' run in a circle`);
    taken.push(step);
    type = step.to;
  }
  return taken;
}

/** A version that is jumped over was written by somebody once, and must be readable too. */
function checkVersions(step: Upcaster, { known, steps, complain }: Chains): void {
  const from = parseEventType(step.from);
  const to = parseEventType(step.to);
  if (from.agg !== to.agg || from.action !== to.action) return;
  if (to.version < from.version)
    throw complain(`'${step.from}' is upcast backwards to '${step.to}'`);
  for (let version = from.version + 1; version < to.version; version += 1) {
    const between = `${from.agg}.${from.action}.v${version}`;
    if (!known.has(between) && !steps.has(between)) {
      throw complain(`'${step.from}' is upcast to '${step.to}', but nothing reads '${between}'`);
    }
  }
}
