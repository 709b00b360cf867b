// What the compiler cannot see of an aggregate's definition, or was told to overlook.

import type { Named, SnapshotPolicy } from './aggregate.ts';
import type { Complain } from './upcast-chains.ts';

const snapshotDefaults = { every: 100, codeVersion: 1 } as const;

export function checkNames(
  aggregate: string,
  definitions: readonly Named[],
  complain: Complain,
): ReadonlyMap<string, Named> {
  const byType = new Map<string, Named>();
  for (const definition of definitions) {
    const { type, agg } = definition;
    if (agg !== aggregate) throw complain(`'${type}' belongs to '${agg}'`);
    if (byType.has(type)) throw complain(`'${type}' is listed twice`);
    byType.set(type, definition);
  }
  return byType;
}

export function handlersOf<Handler>(
  map: 'decide' | 'evolve',
  handlers: object,
  known: ReadonlyMap<string, Named>,
  complain: Complain,
): ReadonlyMap<string, Handler> {
  const byType = new Map<string, unknown>(Object.entries(handlers));
  for (const type of known.keys()) {
    if (typeof byType.get(type) !== 'function') throw complain(`${map} has nothing for '${type}'`);
  }
  for (const type of byType.keys()) {
    if (!known.has(type)) throw complain(`${map} handles '${type}', which is not listed`);
  }
  return byType as ReadonlyMap<string, Handler>;
}

export function checkSnapshotPolicy<State>(
  policy: Partial<SnapshotPolicy<State>> = {},
  complain: Complain,
): SnapshotPolicy<State> {
  const { every = snapshotDefaults.every, codeVersion = snapshotDefaults.codeVersion } = policy;
  const { afterMs, holdsPersonalData = true } = policy;
  if (!Number.isInteger(every) || every < 1) {
    throw complain(`snapshot.every must be a whole number from 1, not ${every}`);
  }
  if (!Number.isInteger(codeVersion) || codeVersion < 1) {
    throw complain(`snapshot.codeVersion must be a whole number from 1, not ${codeVersion}`);
  }
  if (afterMs !== undefined && !(afterMs > 0)) {
    throw complain(`snapshot.afterMs must be above 0, not ${afterMs}`);
  }
  return {
    every,
    afterMs,
    codeVersion,
    holdsPersonalData,
    encode: policy.encode ?? ((state) => state),
    decode: policy.decode ?? ((json) => json as State),
  };
}
