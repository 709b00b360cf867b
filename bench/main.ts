// `npm run bench -- <name>`: compares Millrace with its peers in one benchmark; prints tables or a line of JSON.

import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { ours } from './benchmark.ts';
import { benchmarks, type BenchmarkEntry } from './benchmarks.ts';
import { runBenchmark, type Outcome } from './harness.ts';
import { ensurePeers, peerVersion } from './peers.ts';
import { ratiosOf, resultsOf } from './results.ts';
import { renderCase } from './table.ts';

interface Options {
  readonly quick: boolean;
  readonly json: boolean;
  readonly only: string;
}

const exitCodes = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        case: { type: 'string', default: '' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    return usageError(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  const [name, ...rest] = positionals;
  if (values.help || name === undefined) {
    console.log(usage());
    return exitCodes.ok;
  }
  if (rest.length > 0)
    return usageError(`only one benchmark can run at a time; remove '${rest.join(' ')}'`);
  const entry = benchmarks.find((benchmark) => benchmark.name === name);
  if (entry === undefined)
    return usageError(
      `unknown benchmark '${name}'. Known: ${benchmarks.map((each) => each.name).join(', ')}.`,
    );
  return interruptible((signal) =>
    run(entry, { quick: values.quick, json: values.json, only: values.case }, signal),
  );
}

async function run(entry: BenchmarkEntry, options: Options, signal: AbortSignal): Promise<number> {
  // With --json, standard output contains only the last line.
  const say = (text: string): void => (options.json ? console.error(text) : console.log(text));
  const { benchmark } = await entry.load();
  if (benchmark.peers.length > 0) await ensurePeers({ signal, say });
  say(await machineLine(benchmark.peers));
  say(`ratio: ${ours} compared with the subject of the row; above 1, ${ours} is better`);
  const outcome = await runBenchmark(benchmark, {
    quick: options.quick,
    only: options.only,
    signal,
    onCase: (measured) => say(`\n${renderCase(measured)}`),
  });
  if (outcome.measured.length + outcome.failures.length === 0) {
    return usageError(`no case of '${entry.name}' has '${options.only}' in its name`);
  }
  for (const failure of outcome.failures) {
    console.error(`\n${failure.case} could not run:`, failure.error);
  }
  if (options.json) console.log(jsonLine(benchmark.name, outcome));
  return outcome.failures.length === 0 ? exitCodes.ok : exitCodes.failed;
}

/** The first interrupt closes the resources of the benchmark; the second one exits immediately. */
async function interruptible(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const interrupt = new AbortController();
  const onInterrupt = (): void => interrupt.abort(new Error('interrupted'));
  process.once('SIGINT', onInterrupt).once('SIGTERM', onInterrupt);
  try {
    return await work(interrupt.signal);
  } catch (error) {
    if (interrupt.signal.aborted) {
      console.error('interrupted');
      return exitCodes.interrupted;
    }
    console.error(error);
    return exitCodes.failed;
  } finally {
    process.off('SIGINT', onInterrupt).off('SIGTERM', onInterrupt);
  }
}

function jsonLine(name: string, { measured }: Outcome): string {
  const results = measured.map(resultsOf);
  return JSON.stringify({ name, results: results.flat(), ratios: results.flatMap(ratiosOf) });
}

async function machineLine(peers: readonly string[]): Promise<string> {
  const processors = cpus();
  const versions = await Promise.all(
    peers.map(async (peer) => `${peer} ${await peerVersion(peer)}`),
  );
  return [
    `${processors[0]?.model.trim() ?? 'unknown processor'} × ${processors.length}`,
    `Node ${process.versions.node}`,
    ...versions,
  ].join(', ');
}

function usage(): string {
  const width = Math.max(...benchmarks.map(({ name }) => name.length));
  return [
    'npm run bench -- <name> [--quick] [--json] [--case <text>]',
    '',
    ...benchmarks.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    '  --quick        ends within 50 seconds',
    '  --json         tables to standard error, the results as one line to standard output',
    '  --case <text>  only the cases whose name contains the text',
  ].join('\n');
}

function usageError(message: string): number {
  console.error(`bench: ${message}\n\n${usage()}`);
  return exitCodes.usage;
}
