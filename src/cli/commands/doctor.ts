// `millrace doctor`: checks that every configured engine is reachable, usable and safe, and how to fix it.

import { basename } from 'node:path';
import { isAtLeast, type Finding, type FindingLevel } from '../../foundation/finding.ts';
import { MillraceError } from '../../foundation/error.ts';
import { errorCodes } from '../../foundation/error-codes.ts';
import { defineCommand, exitCodes, usage, type CommandContext } from '../command.ts';
import { configOption, defined, durationMs, option } from '../options.ts';
import { packageVersion } from '../package-version.ts';
import { busNeed } from '../product-settings.ts';
import { storeOption, storeUrl } from '../stores.ts';
import type { Paint } from '../terminal/paint.ts';
import type { RoleReport } from '../../platform/engines/role-report.ts';
import { rolesTable } from '../terminal/roles-table.ts';
import { counted } from '../terminal/text.ts';

const nodeVersionMin = '22.18';

interface Subject {
  readonly subject: string;
  readonly url?: string;
  readonly findings: readonly Finding[];
}

export const doctorCommand = defineCommand({
  name: 'doctor',
  summary:
    'checks every configured engine: reachable, usable, safe, fast; shows how to fix problems',
  usage: '[--store <url>] [--timeout <duration>] [--json]',
  options: {
    ...storeOption,
    ...configOption,
    timeout: option('duration', 'time limit of each check (default: 5s)'),
  },
  examples: [
    'millrace doctor',
    'millrace doctor --store postgres://localhost/shop',
    'MILLRACE_KEYS=redis://localhost:6379 millrace doctor --json',
  ],
  sections: [
    {
      title: 'Signs',
      rows: [
        ['✓', 'good'],
        ['!', 'works, but may lose data or be slow'],
        ['✗', 'does not work: the exit code is 1'],
        ['?', 'could not be checked'],
      ],
    },
  ],
  async run(context) {
    const { values, paint } = context;
    const timeoutMs = durationMs('timeout', values.timeout) ?? 5_000;
    if (timeoutMs < 1_000) throw usage('--timeout must be at least 1s');
    const process = { subject: 'process', findings: processFindings(context) };
    const engines = await examineDeployment(context, values, timeoutMs);
    const subjects = [process, ...engines.subjects];
    const levels = subjects.flatMap(({ findings }) => findings.map(({ level }) => level));
    const isBroken = levels.includes('broken');
    return {
      document: { ok: !isBroken, subjects, roles: engines.roles },
      text: `${subjects.map((each) => section(each, paint)).join('\n')}\n${engines.roles.length === 0 ? '' : `${await rolesTable(context, engines.roles)}\n`}${summary(levels, paint)}`,
      exitCode: isBroken ? exitCodes.failed : exitCodes.ok,
    };
  },
});

interface Deployment {
  readonly subjects: readonly Subject[];
  /** Which engine has which role. */
  readonly roles: readonly RoleReport[];
}

async function examineDeployment(
  context: CommandContext,
  given: { readonly config?: string; readonly store?: string },
  timeoutMs: number,
): Promise<Deployment> {
  const { cwd, env } = context;
  try {
    const { loadConfig } = await import('../../platform/config/millrace-config.ts');
    const { examineEngines } = await import('../../platform/engines/examine-engines.ts');
    const config = await loadConfig({ cwd, env, file: given.config });
    const { engines = {}, migrate = 'auto', modules = [] } = config;
    const store = given.store === undefined ? engines.store : storeUrl(context, given.store);
    const urls = { ...engines, ...defined({ store }) };
    const reports = await examineEngines(urls, { timeoutMs, migrate });
    const detail = counted(modules.length, 'module');
    const { resolveRoles } = await import('../../platform/engines/resolve-roles.ts');
    const { roleReport } = await import('../../platform/engines/role-report.ts');
    const { bindModules, createModuleContext } =
      await import('../../platform/modules/platform-module.ts');
    const { needsOf } = await import('../../platform/modules/role-needs.ts');
    const { isProduction, localUrl } = config;
    const bound = bindModules(modules, createModuleContext().context);
    const needs = needsOf({ ...config, usesBus: busNeed(config) }, bound);
    const roles = roleReport(resolveRoles({ urls, needs, isProduction, localUrl }));
    return {
      roles,
      subjects: [
        {
          subject: 'configuration',
          findings: [
            { check: 'config', level: 'ok', detail },
            ...(await taskTypesFindings(config.taskTypesFile)),
            ...roles.flatMap(({ role, warning }) =>
              warning === undefined
                ? []
                : [{ check: `role ${role}`, level: 'warning', detail: warning } as const],
            ),
          ],
        },
        ...reports.map(({ roles: names, url, findings }) => ({
          subject: names.join(', '),
          url,
          findings,
        })),
      ],
    };
  } catch (error) {
    const findings = [brokenBy('config', error)];
    return { roles: [], subjects: [{ subject: 'configuration', findings }] };
  }
}

/** Tasks cannot open with an invalid file; the finding names the field and the line. */
async function taskTypesFindings(file: string | undefined): Promise<readonly Finding[]> {
  if (file === undefined) return [];
  const check = 'task types';
  try {
    const { loadTaskTypes } = await import('../../tasks/run/watch-task-types.ts');
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

/** A clock that was never set shows a time in the past. */
const clockMinMs = Date.parse('2026-01-01');

function processFindings({ env }: Pick<CommandContext, 'env'>): readonly Finding[] {
  const version = process.versions.node;
  const node: Finding = isAtLeast(version, nodeVersionMin)
    ? { check: 'node', level: 'ok', detail: version }
    : {
        check: 'node',
        level: 'broken',
        detail: `${version} is too old`,
        remedy: `Install Node ${nodeVersionMin} or newer.`,
      };
  const nowMs = Date.now();
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const detail = `${new Date(nowMs).toISOString()}, time zone ${timeZone}`;
  const clock: Finding =
    nowMs >= clockMinMs
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
            detail: 'NODE_TLS_REJECT_UNAUTHORIZED=0: server certificates are not verified',
            remedy: 'Unset it; use NODE_EXTRA_CA_CERTS for private certificate authorities.',
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
  const parts = [
    ...(broken > 0 ? [counted(broken, 'problem')] : []),
    ...(warnings > 0 ? [counted(warnings, 'warning')] : []),
  ];
  if (parts.length === 0) return `${paint.green('no problems')}\n`;
  return `${paint[broken > 0 ? 'red' : 'yellow'](parts.join(', '))}\n`;
}
