// The findings of `millrace doctor`; its checks are in the adapters.

import { MillraceError } from './error.ts';
import { withinTime } from './async/within-time.ts';

/** `broken`: it does not work, or loses data. `unknown`: it could not be checked. */
export type FindingLevel = 'ok' | 'warning' | 'broken' | 'unknown';

export interface Finding {
  readonly check: string;
  readonly level: FindingLevel;
  /** One line, without secrets. */
  readonly detail: string;
  /** The action that fixes the problem. */
  readonly remedy?: string | undefined;
}

export interface Examination {
  /** How long one check may take. */
  readonly timeoutMs: number;
  /** The clock of this process, in milliseconds since 1970. */
  readonly nowMs: () => number;
}

/** Runs one check within its time limit. A thrown error becomes a finding. */
export async function examine(
  check: string,
  work: () => Promise<readonly Finding[]>,
  { timeoutMs }: Pick<Examination, 'timeoutMs'>,
  remedyOf: (error: unknown) => string | undefined = () => undefined,
): Promise<readonly Finding[]> {
  const late = (): readonly Finding[] => {
    const detail = `no response within ${timeoutMs} ms`;
    const remedy = 'Check whether the server is overloaded, or a firewall drops the packets.';
    return [{ check, level: 'broken', detail, remedy }];
  };
  try {
    return await withinTime(work(), { ms: timeoutMs, late });
  } catch (error) {
    return [{ check, level: 'broken', detail: reasonOf(error), remedy: remedyOf(error) }];
  }
}

/** By name, in order. If the first check is broken, the others are skipped: they would report the same. */
export type Checks<Connection> = Readonly<
  Record<string, (connection: Connection) => Promise<readonly Finding[]>>
>;

export interface CheckOptions extends Pick<Examination, 'timeoutMs'> {
  readonly remedyOf: (error: unknown) => string | undefined;
}

/** Runs the checks one after the other over one connection, which the first check opens within its time limit. */
export async function examineOver<Connection extends AsyncDisposable>(
  connect: () => Promise<Connection>,
  checks: Checks<Connection>,
  options: CheckOptions,
): Promise<readonly Finding[]> {
  let opening: Promise<Connection> | undefined;
  const found: Finding[] = [];
  for (const [at, [check, work]] of Object.entries(checks).entries()) {
    const run = async () => work(await (opening ??= connect()));
    found.push(...(await examine(check, run, options, options.remedyOf)));
    if (at === 0 && isBroken(found)) break;
  }
  // A server that does not respond must not delay the report; the connection is closed when it responds.
  await withinTime(close(opening), { ms: closeMsMax, late: () => undefined });
  return found;
}

async function close(opening: Promise<AsyncDisposable> | undefined): Promise<void> {
  try {
    await (await opening)?.[Symbol.asyncDispose]();
  } catch {
    // The checks have already reported the problem.
  }
}

const closeMsMax = 1_000;

export function isBroken(findings: readonly Finding[]): boolean {
  return findings.some(({ level }) => level === 'broken');
}

/** Finds the remedy by the driver's error text, or by the common errors of an unreachable server. */
export function remedyBy(
  ...remedies: readonly (readonly [text: RegExp, remedy: string])[]
): (error: unknown) => string | undefined {
  return (error) => {
    const text = error instanceof Error ? error.message : '';
    const known = remedies.find(([pattern]) => pattern.test(text));
    return known === undefined ? unreachableRemedy(error) : known[1];
  };
}

export function unreachableRemedy(error: unknown): string | undefined {
  const text = [error, (error as { readonly cause?: unknown } | null)?.cause]
    .map((each) => (each instanceof Error ? `${each.name} ${each.message}` : ''))
    .join(' ');
  return /ECONN|EHOST|ENET|ETIMEDOUT|ENOTFOUND|EAI_|refused|closed|unavailable/i.test(text)
    ? 'Check host and port in the URL, and whether the server runs.'
    : undefined;
}

function reasonOf(error: unknown): string {
  if (error instanceof MillraceError) return `${error.code}: ${error.message}`;
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? text;
}

/** The median duration of some calls, in milliseconds. */
export async function medianMs(call: () => Promise<unknown>, count = 5): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const startMs = performance.now();
    await call();
    times.push(performance.now() - startMs);
  }
  return times.toSorted((one, other) => one - other)[Math.floor(count / 2)] ?? 0;
}

export interface LatencyLimit {
  readonly slowMs: number;
  readonly remedy: string;
}

/** Reports how long a call takes. */
export async function latencyOf(
  check: string,
  call: () => Promise<unknown>,
  limit: LatencyLimit,
): Promise<readonly Finding[]> {
  return [latencyFinding(check, await medianMs(call), limit)];
}

/** Reports the difference between the clocks of the server and this process. */
export async function skewOf(
  nowMs: Examination['nowMs'],
  readServerMs: () => Promise<number>,
): Promise<readonly Finding[]> {
  const beforeMs = nowMs();
  const serverMs = await readServerMs();
  return [skewFinding({ beforeMs, serverMs, afterMs: nowMs() })];
}

export function latencyFinding(
  check: string,
  ms: number,
  { slowMs, remedy }: LatencyLimit,
): Finding {
  const detail = `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;
  return ms <= slowMs
    ? { check, level: 'ok', detail }
    : { check, level: 'warning', detail, remedy };
}

const skewMsMax = 1_000;

/** The server's clock was read between `beforeMs` and `afterMs` of this process. */
export function skewFinding(times: {
  readonly beforeMs: number;
  readonly serverMs: number;
  readonly afterMs: number;
}): Finding {
  const { beforeMs, serverMs, afterMs } = times;
  const ahead = serverMs > afterMs ? serverMs - afterMs : Math.min(0, serverMs - beforeMs);
  const skewMs = Math.round(ahead);
  const check = 'clock skew';
  if (Math.abs(skewMs) <= skewMsMax) return { check, level: 'ok', detail: `${skewMs} ms` };
  return {
    check,
    level: 'warning',
    detail: `its clock is ${Math.abs(skewMs)} ms ${skewMs > 0 ? 'ahead of' : 'behind'} the clock here`,
    remedy: 'Run NTP on both machines: leases, timers and expiry dates depend on these clocks.',
  };
}

/** Versions as numbers: `7.0.15` is at least `6.2`. */
export function isAtLeast(version: string, least: string): boolean {
  const [have, want] = [version, least].map((text) => text.split('.').map(Number));
  for (const [at, wanted] of (want ?? []).entries()) {
    const found = have?.[at] ?? 0;
    if (found !== wanted) return found > wanted;
  }
  return true;
}

export function versionFinding(product: string, version: string, least: string): Finding {
  const check = 'version';
  const detail = `${product} ${version}`;
  if (isAtLeast(version, least)) return { check, level: 'ok', detail };
  const remedy = `Install ${product} ${least} or newer.`;
  return { check, level: 'broken', detail: `${detail} is too old`, remedy };
}
