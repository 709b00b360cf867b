// `millrace doctor`: whether everything that is configured is there, able and safe, and what to do if not.

import { basename } from 'node:path';
import { isAtLeast, type Finding, type FindingLevel } from '../foundation/finding.ts';
import { MillraceError } from '../foundation/error.ts';
import { errorCodes } from '../foundation/error-codes.ts';
import type { MillraceConfig } from '../platform/config/millrace-config.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { durationSeconds } from './option-values.ts';
import { packageVersion } from './package-version.ts';
import type { Paint } from './paint.ts';
import { jsonOption, storeOption, storeSections, storeUrl } from './store-option.ts';

const name = 'doctor';
const nodeLeast = '22.18';

const options = {
  ...storeOption,
  config: { type: 'string', value: 'file', summary: 'instead of ./millrace.config.ts' },
  timeout: { type: 'string', value: 'duration', summary: 'of each check (5s)' },
  ...jsonOption,
} as const;

interface Subject {
  readonly subject: string;
  readonly url?: string;
  readonly findings: readonly Finding[];
}

export const doctorCommand: Command = {
  name,
  summary: 'checks every configured engine: reachable, able, safe, fast; and says what to do',
  usage: 'doctor [--store <url>] [--timeout <duration>] [--json]',
  options,
  examples: [
    'millrace doctor',
    'millrace doctor --store postgres://localhost/shop',
    'MILLRACE_KEYS=redis://localhost:6379 millrace doctor --json',
  ],
  sections: [
    ...storeSections,
    {
      title: 'Signs',
      rows: [
        ['✓', 'good'],
        ['!', 'works, but something may be lost, or slow'],
        ['✗', 'does not work: the exit code is 1'],
        ['?', 'could not be found out'],
      ],
    },
  ],
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes options only, not '${positionals[0]}'`);
    const seconds = values.timeout === undefined ? 5 : durationSeconds('timeout', values.timeout);
    if (seconds < 1) throw usage('--timeout is at least 1s');
    const process = { subject: 'process', findings: processFindings(context) };
    const subjects = [process, ...(await engineSubjects(context, values, seconds * 1_000))];
    const levels = subjects.flatMap(({ findings }) => findings.map(({ level }) => level));
    const isBroken = levels.includes('broken');
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ ok: !isBroken, subjects }, null, 2)}\n`
        : `${subjects.map((each) => section(each, paint)).join('\n')}\n${summary(levels, paint)}`,
    );
    return isBroken ? exitCodes.failed : exitCodes.ok;
  },
};

async function engineSubjects(
  context: CommandContext,
  given: { readonly config?: string; readonly store?: string },
  timeoutMs: number,
): Promise<readonly Subject[]> {
  const { cwd, env } = context;
  try {
    const { loadConfig } = await import('../platform/config/millrace-config.ts');
    const { examineEngines } = await import('../platform/engines/examine-engines.ts');
    const file = given.config === undefined ? {} : { file: given.config };
    const config: MillraceConfig = await loadConfig({ cwd, env, ...file });
    const { engines = {}, migrate = 'auto', modules = [] } = config;
    const store = given.store === undefined ? engines.store : storeUrl(context, given.store);
    const urls = { ...engines, ...(store === undefined ? {} : { store }) };
    const reports = await examineEngines(urls, { timeoutMs, migrate });
    const detail = `${modules.length} ${modules.length === 1 ? 'module' : 'modules'}`;
    return [
      {
        subject: 'configuration',
        findings: [
          { check: 'config', level: 'ok', detail },
          ...(await taskTypesFindings(config.taskTypesFile)),
        ],
      },
      ...reports.map(({ roles, url, findings }) => ({ subject: roles.join(', '), url, findings })),
    ];
  } catch (error) {
    return [{ subject: 'configuration', findings: [brokenBy('config', error)] }];
  }
}

/** What is wrong in the file keeps tasks from being opened: it is told here, with its field and line. */
async function taskTypesFindings(file: string | undefined): Promise<readonly Finding[]> {
  if (file === undefined) return [];
  const check = 'task types';
  try {
    const { loadTaskTypes } = await import('../tasks/run/watch-task-types.ts');
    const types = await loadTaskTypes(file);
    return [{ check, level: 'ok', detail: `${types.length} in ${basename(file)}` }];
  } catch (error) {
    return [brokenBy(check, error)];
  }
}

function brokenBy(check: string, error: unknown): Finding {
  if (!(error instanceof MillraceError)) throw error;
  const { remedy } = errorCodes[error.code];
  return { check, level: 'broken', detail: error.message, remedy };
}

/** A clock that was never set counts from some years ago. */
const clockLeastMs = Date.parse('2026-01-01');

function processFindings({ env }: Pick<CommandContext, 'env'>): readonly Finding[] {
  const version = process.versions.node;
  const node: Finding = isAtLeast(version, nodeLeast)
    ? { check: 'node', level: 'ok', detail: version }
    : {
        check: 'node',
        level: 'broken',
        detail: `${version} is too old`,
        remedy: `Take Node ${nodeLeast} or newer.`,
      };
  const nowMs = Date.now();
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const detail = `${new Date(nowMs).toISOString()}, time zone ${timeZone}`;
  const clock: Finding =
    nowMs >= clockLeastMs
      ? { check: 'clock', level: 'ok', detail }
      : { check: 'clock', level: 'broken', detail, remedy: 'Set the clock of this machine (NTP).' };
  const isUnchecked = env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0';
  return [
    { check: 'millrace', level: 'ok', detail: packageVersion() },
    node,
    clock,
    ...(isUnchecked
      ? [
          {
            check: 'TLS',
            level: 'warning',
            detail: 'NODE_TLS_REJECT_UNAUTHORIZED=0: nobody checks who the servers are',
            remedy: 'Unset it; NODE_EXTRA_CA_CERTS names authorities of your own.',
          } as const,
        ]
      : []),
  ];
}

const signs = { ok: '✓', warning: '!', broken: '✗', unknown: '?' } as const;
const colours = { ok: 'green', warning: 'yellow', broken: 'red', unknown: 'cyan' } as const;

function section({ subject, url, findings }: Subject, paint: Paint): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, level, detail, remedy }) => [
    `  ${paint[colours[level]](signs[level])} ${check.padEnd(width)}  ${detail}`,
    ...(remedy === undefined ? [] : [`    ${' '.repeat(width)}  ${paint.dim(remedy)}`]),
  ]);
  const title = url === undefined ? '' : `  ${paint.cyan(url)}`;
  return [`${paint.bold(subject)}${title}`, ...lines, ''].join('\n');
}

function summary(levels: readonly FindingLevel[], paint: Paint): string {
  const count = (level: FindingLevel): number => levels.filter((each) => each === level).length;
  const [broken, warnings] = [count('broken'), count('warning')];
  if (broken > 0) {
    const more = warnings === 0 ? '' : `, ${warnings} to think about`;
    return `${paint.red(`${broken} to mend${more}`)}\n`;
  }
  return warnings > 0
    ? `${paint.yellow(`It works; ${warnings} to think about`)}\n`
    : `${paint.green('All is well')}\n`;
}
