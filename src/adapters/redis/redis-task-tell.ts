// Signals in streams of other slots than their job, on a cluster: stored under their id after the job was
// changed, and then noted with it. What a kill leaves out in between, `repair` finds.

import type { Appended } from '../../bus/bus-engine.ts';
import type { TaskSignal } from '../../tasks/task-signal.ts';
import type { RedisTaskContext } from './redis-task-context.ts';
import { taskUpkeepScripts } from './redis-task-upkeep-scripts.ts';
import {
  placeInJob,
  signalEntry,
  signalText,
  streamNumber,
  streamNumbers,
  type StreamNumber,
} from './redis-task-signals.ts';
import { suffixOf, type TypePlace } from './redis-task-space.ts';

/** How long the streams themselves remember an id: longer than any writer lives on without its note. */
const rememberMs = 3_600_000;

export type TellOthers = (
  place: TypePlace,
  signals: readonly TaskSignal[],
  nowMs: number,
) => Promise<void>;

interface JobSignal {
  readonly signal: TaskSignal;
  readonly number: StreamNumber;
  readonly suffix: string;
}

export interface TaskTell extends AsyncDisposable {
  readonly tellOthers: TellOthers;
  repair(signals: readonly TaskSignal[], nowMs: number): Promise<number>;
}

export function createTaskTell(context: RedisTaskContext): TaskTell {
  const { calls, space, append } = context;
  const { isOneDomain } = space.bus;
  const noting = new Set<Promise<void>>();

  async function note(place: TypePlace, told: readonly (JobSignal & { readonly at: string })[]) {
    const values = told.flatMap(({ suffix, number, signal, at }) => [
      suffix,
      number,
      placeInJob(number, signal.id),
      at,
    ]);
    await calls.runText(taskUpkeepScripts.note, [place.base, place.never], values);
  }

  /** Nobody waits for the note: within the hour the stream itself knows what it has. */
  function noteLater(place: TypePlace, told: readonly (JobSignal & { readonly at: string })[]) {
    const work = note(place, told).catch(() => undefined);
    noting.add(work);
    void work.finally(() => noting.delete(work));
  }

  async function repairType(
    place: TypePlace,
    signals: readonly JobSignal[],
    nowMs: number,
  ): Promise<number> {
    const { base, never, queue, terminal, progress } = place;
    const here = signals.filter(({ number }) => isOneDomain || number === streamNumbers.queue);
    let repaired = 0;
    if (here.length > 0) {
      const keys = [base, never, queue.key, queue.mark];
      if (isOneDomain) keys.push(terminal.key, terminal.mark, progress.key, progress.mark);
      const subjects = [queue.subject, terminal.subject, progress.subject];
      await context.registry.register(subjects);
      const header = [space.bus.channel, isOneDomain ? space.bus.registry : '', ...subjects];
      const values = here.flatMap(({ suffix, number, signal }) => [
        suffix,
        number,
        placeInJob(number, signal.id),
        signalText(signal, nowMs),
      ]);
      repaired += Number(
        await calls.runText(taskUpkeepScripts.repair, keys, [...header, ...values]),
      );
    }
    const elsewhere = signals.filter((each) => !here.includes(each));
    if (elsewhere.length === 0) return repaired;
    const asked = elsewhere.flatMap(({ suffix, number, signal }) => [
      suffix,
      number,
      placeInJob(number, signal.id),
    ]);
    const known = (await calls.runText(taskUpkeepScripts.noted, [base, never], asked)) as string[];
    const noted = new Map(elsewhere.map(({ signal }, at) => [signal.id, known[at] ?? '']));
    const stored = await restore(
      elsewhere.map(({ signal }) => signal),
      noted,
      nowMs,
    );
    const told = elsewhere.flatMap((each, at) => {
      const { sequence: id = '', isDuplicate = true } = stored[at] ?? {};
      return isDuplicate && noted.get(each.signal.id) === id ? [] : [{ ...each, at: id }];
    });
    if (told.length > 0) await note(place, told);
    return repaired + countNew(stored);
  }

  /** Those that their streams do not have, whatever somebody has written down of them. */
  async function restore(
    signals: readonly TaskSignal[],
    noted: ReadonlyMap<string, string>,
    nowMs: number,
  ): Promise<readonly Appended[]> {
    const { bus } = space;
    const stored: Appended[] = Array.from({ length: signals.length });
    const placed = signals.map((signal, at) => ({ signal, at }));
    await context.registry.register([...new Set(signals.map(({ subject }) => subject))]);
    await Promise.all(
      [...Map.groupBy(placed, ({ signal }) => signal.subject)].map(async ([subject, all]) => {
        const key = bus.streamKey(subject);
        const values = all.flatMap(({ signal }) => [
          signal.id,
          noted.get(signal.id) ?? '',
          signalText(signal, nowMs),
        ]);
        const header = [rememberMs, bus.channel, bus.isOneDomain ? bus.registry : '', subject];
        const cells = (await calls.runText(
          taskUpkeepScripts.restore,
          [key, bus.mark(key)],
          [...header, ...values],
        )) as readonly unknown[];
        for (const [n, { at }] of all.entries()) {
          stored[at] = {
            sequence: String(cells[n * 2]),
            isDuplicate: Number(cells[n * 2 + 1]) === 1,
          };
        }
      }),
    );
    return stored;
  }

  function jobSignal(place: TypePlace, signal: TaskSignal): JobSignal | undefined {
    const number = streamNumber(place, signal.subject);
    const { taskId } = signal.payload;
    if (number === undefined || typeof taskId !== 'string') return undefined;
    return { signal, number, suffix: suffixOf(taskId) };
  }

  return {
    async tellOthers(place, signals, nowMs) {
      const others = signals
        .flatMap((signal) => jobSignal(place, signal) ?? [])
        .filter(({ number }) => number !== streamNumbers.queue);
      if (others.length === 0) return;
      const entries = others.map(({ signal }) => signalEntry(signal, nowMs));
      const stored = await append(entries, rememberMs);
      noteLater(
        place,
        others.map((each, at) => ({ ...each, at: stored[at]?.sequence ?? '' })),
      );
    },
    async repair(signals, nowMs) {
      const byType = Map.groupBy(signals, ({ payload: { type } }) =>
        typeof type === 'string' ? type : '',
      );
      const counts = await Promise.all(
        [...byType].map(async ([type, all]) => {
          const place = type === '' ? undefined : space.place(type);
          const ofJobs =
            place === undefined ? [] : all.flatMap((signal) => jobSignal(place, signal) ?? []);
          const own = new Set(ofJobs.map(({ signal }) => signal));
          const others = all.filter((signal) => !own.has(signal));
          const told = others.length === 0 ? 0 : countNew(await restore(others, new Map(), nowMs));
          return told + (place === undefined ? 0 : await repairType(place, ofJobs, nowMs));
        }),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(noting);
    },
  };
}

function countNew(stored: readonly Appended[]): number {
  return stored.filter(({ isDuplicate }) => !isDuplicate).length;
}
