// Calls of the builders themselves: a constant argument that they will refuse is known before they run.

import { attempt, builders, type Builder, type Parameter, type Problem } from '../builders.ts';
import type { Report } from '../finding.ts';
import type { CallRule } from '../rule.ts';
import { guessArgument } from '../spelling.ts';
import { dottedName, type Node } from '../spot.ts';
import { quote } from '../text.ts';
import { guessEventType } from './event-type.ts';
import { tenseReport } from './event-tense.ts';

/** Stands for an argument that is computed, so that the others can be judged one by one. */
const acceptable: Readonly<Record<Parameter, unknown>> = {
  identifier: 'x',
  tenant: 'x',
  id: 'x',
  version: 1,
  'event-type': 'x.created.v1',
  name: 'sub:x:x:v1',
  topic: 'x',
  filters: {},
};

export const builderCallRule: CallRule = ({ node }) => {
  if (node.type !== 'CallExpression') return [];
  const [name, builder] = builderOf(node.callee) ?? [];
  if (builder === undefined) return [];
  const reports: Report[] = [];
  for (const [index, parameter] of builder.parameters.entries()) {
    const argument = node.arguments[index];
    if (argument === undefined || argument.type === 'SpreadElement') break;
    const value = constantOf(argument);
    if (value === undefined) continue;
    const problem = problemWith(builder, index, value);
    if (problem !== undefined && !isLookedUp(problem, node.arguments.length, builder)) {
      reports.push(report(builder, { index, parameter, value }, problem, argument));
    } else if (name === 'buildEventType' && index === 1) {
      const tense = tenseReport(argument, String(value), quote);
      if (tense !== undefined) reports.push(tense);
    }
  }
  return reports;
};

/** Also through a namespace: `contracts.redisKeys.snapshot`. */
function builderOf(callee: Node): readonly [string, Builder] | undefined {
  const parts = dottedName(callee)?.split('.') ?? [];
  for (const count of [1, 2, 3]) {
    const name = parts.slice(-count).join('.');
    if (Object.hasOwn(builders, name)) return [name, builders[name as keyof typeof builders]];
  }
  return undefined;
}

function constantOf(node: Node): string | number | undefined {
  if (node.type === 'Literal') {
    return typeof node.value === 'string' || typeof node.value === 'number'
      ? node.value
      : undefined;
  }
  if (node.type === 'TemplateLiteral' && node.expressions.length === 0) {
    return node.quasis[0]?.value.cooked ?? undefined;
  }
  if (node.type === 'UnaryExpression' && node.operator === '-') {
    const value = constantOf(node.argument);
    return typeof value === 'number' ? -value : undefined;
  }
  return undefined;
}

function problemWith(builder: Builder, index: number, value: unknown): Problem | undefined {
  const args: unknown[] = builder.parameters.map((parameter) => acceptable[parameter]);
  args[index] = value;
  const outcome = attempt(builder.build, args);
  return outcome.ok ? undefined : outcome.problem;
}

/** With a directory as the last argument, only it can say which tenants there are. */
function isLookedUp({ code }: Problem, given: number, { parameters }: Builder): boolean {
  return given > parameters.length && /^(?:TENANT_UNKNOWN|STREAM_AMBIGUOUS)$/.test(code);
}

function report(
  builder: Builder,
  { index, parameter, value }: { index: number; parameter: Parameter; value: string | number },
  problem: Problem,
  { start, end }: { readonly start: number; readonly end: number },
): Report {
  const guess = mended(parameter, value, problem);
  const works = guess !== undefined && problemWith(builder, index, guess) === undefined;
  const code = typeof guess === 'number' ? String(guess) : quote(guess ?? '');
  return {
    rule: builder.rule,
    start,
    end,
    reason: problem.reason,
    suggestion: works ? code : undefined,
  };
}

function mended(
  parameter: Parameter,
  value: string | number,
  { suggestion }: Problem,
): string | number | undefined {
  if (parameter === 'version') {
    const digits = /\d+/.exec(String(value))?.[0];
    return Math.max(1, Number(digits ?? 1));
  }
  if (parameter === 'event-type') return guessEventType(String(value));
  return parameter === 'topic' ? suggestion : guessArgument(parameter, String(value));
}
