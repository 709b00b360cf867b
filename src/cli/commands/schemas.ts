// `millrace schemas`: writes the JSON Schemas of a project's events, commands and tasks, and finds changes that stored
// events do not survive.

import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import {
  schemaChanges,
  schemaRules,
  type SchemaChange,
} from '../../contracts/lint/schema-changes.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parseJson } from '../../foundation/parse-json.ts';
import type { ModuleSchema, ModuleSchemas } from '../../platform/modules/module-schemas.ts';
import { defineCommand, exitCodes, usage, type CommandResult } from '../command.ts';
import { configOption, flag, option } from '../options.ts';
import type { Paint } from '../terminal/paint.ts';
import { counted } from '../terminal/text.ts';

const rules = {
  ...schemaRules,
  'event-removed': 'an event has neither a definition nor an upcaster any more',
  'schema-missing': 'an event with a file has a schema without JSON Schema',
  'schema-outdated': 'a file differs from its definition (with --check)',
} as const;

interface SchemaFinding {
  readonly rule: keyof typeof rules;
  readonly file: string;
  /** JSON pointer into the payload; absent for findings about a whole file. */
  readonly field?: SchemaChange['field'];
  readonly reason: string;
}

interface SchemaFile {
  readonly path: string;
  readonly text: string;
}

interface Comparison {
  readonly findings: readonly SchemaFinding[];
  /** The files that differ from their definitions. */
  readonly changed: readonly SchemaFile[];
  /** The files of events that no longer exist. */
  readonly removed: readonly string[];
  readonly skipped: readonly { readonly file: string; readonly reason: string }[];
}

export const schemasCommand = defineCommand({
  name: 'schemas',
  summary: 'writes the JSON Schemas of events, commands and tasks; rejects breaking changes',
  usage: '[--check | --force] [options]',
  options: {
    dir: option('folder', 'folder of the schemas, to be committed (default: schemas)'),
    check: flag('writes nothing, and fails if a file is not up to date'),
    force: flag('accepts the findings: overwrites or deletes the files'),
    ...configOption,
  },
  examples: ['millrace schemas', 'millrace schemas --check', 'millrace schemas --dir contracts'],
  sections: [{ title: 'Rules', rows: Object.entries(rules) }],
  async run({ values, cwd, env, paint }) {
    const { check: isCheck = false, force: isForced = false } = values;
    if (isCheck && isForced) throw usage('schemas takes either --check or --force');
    const { loadConfig } = await import('../../platform/config/millrace-config.ts');
    const { moduleSchemas } = await import('../../platform/modules/module-schemas.ts');
    const { modules = [] } = await loadConfig({ cwd, env, file: values.config });
    if (modules.length === 0) {
      throw usage('schemas needs modules: add them to millrace.config.ts, or pass --config');
    }
    const folder = resolve(cwd, values.dir ?? 'schemas');
    const compared = await compare(folder, moduleSchemas(modules));
    const { changed, removed } = compared;
    const findings = isCheck
      ? [...compared.findings, ...outdated(compared)]
      : isForced
        ? []
        : compared.findings;
    const isWritten = !isCheck && findings.length === 0;
    if (isWritten) {
      for (const { path, text } of changed) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), text);
      }
      for (const path of isForced ? removed : []) await rm(join(folder, path));
    }
    const written = isWritten ? changed.map(({ path }) => path) : [];
    const shown = { findings, written, skipped: compared.skipped };
    return {
      document: shown,
      text: textOf(shown, { folder: relative(cwd, folder) || '.', isCheck }, paint),
      exitCode: findings.length > 0 ? exitCodes.failed : exitCodes.ok,
    } satisfies CommandResult;
  },
});

async function compare(
  folder: string,
  { schemas, olderEvents }: ModuleSchemas,
): Promise<Comparison> {
  const findings: SchemaFinding[] = [];
  const changed: SchemaFile[] = [];
  const skipped: { readonly file: string; readonly reason: string }[] = [];
  for (const each of schemas) {
    const path = `${each.path}.json`;
    const { schema } = each;
    if (typeof schema === 'string') {
      if (each.kind === 'event' && existsSync(join(folder, path))) {
        findings.push({ rule: 'schema-missing', file: path, reason: schema });
      } else skipped.push({ file: path, reason: schema });
      continue;
    }
    const text = `${JSON.stringify(schema, null, 2)}\n`;
    const former = await readFormer(join(folder, path));
    if (former === text) continue;
    changed.push({ path, text });
    if (each.kind !== 'event' || former === undefined) continue;
    const changes = schemaChanges(parsed(former, join(folder, path)), schema);
    findings.push(...changes.map((change) => ({ ...change, file: path })));
  }
  const removed = removedEvents(folder, schemas, olderEvents);
  const gone = removed.map((file): SchemaFinding => {
    const reason = 'no module defines or upcasts this event, so stored events cannot be read';
    return { rule: 'event-removed', file, reason };
  });
  return { findings: [...findings, ...gone], changed, removed, skipped };
}

/** Undefined: there is no such file. */
async function readFormer(file: string): Promise<string | undefined> {
  return existsSync(file) ? readFile(file, 'utf8') : undefined;
}

function parsed(text: string, file: string): Readonly<Record<string, unknown>> {
  try {
    const schema = parseJson(text);
    if (typeof schema === 'object' && schema !== null) {
      return schema as Readonly<Record<string, unknown>>;
    }
  } catch (cause) {
    throw new MillraceError('USAGE', `'${file}' is not JSON: restore it`, { cause });
  }
  throw new MillraceError('USAGE', `'${file}' is not a JSON Schema: restore it`);
}

function removedEvents(
  folder: string,
  schemas: readonly ModuleSchema[],
  olderEvents: ReadonlySet<string>,
): readonly string[] {
  const known = new Set([...schemas.map(({ path }) => path), ...olderEvents]);
  return globSync('events/*/*.json', { cwd: folder })
    .filter((file) => !known.has(file.replaceAll('\\', '/').replace(/\.json$/, '')))
    .toSorted();
}

/** Files with breaking changes have findings already. */
function outdated({ changed, findings }: Comparison): readonly SchemaFinding[] {
  return changed
    .filter(({ path }) => findings.every(({ file }) => file !== path))
    .map(({ path }) => ({
      rule: 'schema-outdated',
      file: path,
      reason: 'differs from its definition: run millrace schemas',
    }));
}

function textOf(
  {
    findings,
    written,
    skipped,
  }: Pick<Comparison, 'findings' | 'skipped'> & {
    readonly written: readonly string[];
  },
  { folder, isCheck }: { readonly folder: string; readonly isCheck: boolean },
  paint: Paint,
): string {
  const lines = [
    ...findings.map(
      ({ rule, file, reason }) => `${paint.bold(file)}  ${paint.red(rule)}  ${reason}`,
    ),
    ...skipped.map(
      ({ file, reason }) => `${paint.bold(file)}  ${paint.yellow('skipped')}  ${reason}`,
    ),
  ];
  const result =
    findings.length > 0
      ? paint.red(counted(findings.length, 'finding'))
      : isCheck
        ? paint.green(`${folder} is up to date`)
        : paint.green(`${counted(written.length, 'file')} written to ${folder}`);
  const remedy =
    findings.length === 0 || isCheck
      ? ''
      : ': nothing was written. Define a new version with an upcaster, or pass --force if no store has such events.';
  return [...lines, `${result}${remedy}`].join('\n');
}
