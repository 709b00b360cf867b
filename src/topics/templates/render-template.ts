// Renders a template with the JSON that a publisher sent, within a budget of work and a limit on output.

import { ntfyError } from '../ntfy-problems.ts';
import { createTemplateBudget, units, type TemplateBudget } from './budget.ts';
import { callTemplateFunction, isTemplateFunction } from './functions.ts';
import {
  parseTemplate,
  TemplateProblem,
  type TemplateCommand,
  type TemplateNode,
  type TemplatePipe,
  type TemplateTerm,
} from './syntax.ts';
import {
  isDict,
  isEmptyValue,
  isNil,
  ownField,
  shownValue,
  typeOfValue,
  type TemplateValue,
} from './values.ts';

export const templateLimits = {
  templateBytesMax: 32_768,
  bodyBytesMax: 131_072,
  outputCharsMax: 1_048_576,
  errorCharsMax: 500,
} as const;

type Leaving = 'break' | 'continue' | undefined;

/** Throws the problem with which ntfy rejects the message. Templates of one message share a budget. */
export function renderTemplate(
  template: string,
  body: string,
  name: string,
  budget: TemplateBudget = createTemplateBudget(),
): string {
  if (Buffer.byteLength(template) > templateLimits.templateBytesMax)
    throw ntfyError('templateTooLarge');
  let data: TemplateValue;
  try {
    data = JSON.parse(body) as TemplateValue;
  } catch {
    throw ntfyError('templateBodyNotJson');
  }
  try {
    const nodes = parseTemplate(template, isTemplateFunction);
    return run(nodes, data, budget).replaceAll('\\n', '\n').trim();
  } catch (error) {
    if (!(error instanceof TemplateProblem)) throw error;
    const message = error.message.slice(0, templateLimits.errorCharsMax);
    if (error.kind === 'syntax') throw ntfyError('templateInvalid', message);
    if (error.kind === 'disallowed') throw ntfyError('templateDisallowed');
    if (error.kind === 'endless') throw ntfyError('templateTimeout');
    throw ntfyError('templateFailed', `template ${name}: ${message}`);
  }
}

function run(nodes: readonly TemplateNode[], data: TemplateValue, budget: TemplateBudget): string {
  const written: string[] = [];
  let length = 0;
  const scopes: Map<string, TemplateValue>[] = [new Map([['$', data]])];

  const write = (text: string): void => {
    length += text.length;
    if (length > templateLimits.outputCharsMax)
      throw new TemplateProblem('failed', 'limit reached');
    written.push(text);
  };
  const inScope = <T>(work: () => T): T => {
    scopes.push(new Map());
    try {
      return work();
    } finally {
      scopes.pop();
    }
  };

  function lookUp(name: string): TemplateValue {
    budget.charge(scopes.length);
    const scope = scopes.findLast((each) => each.has(name));
    if (scope === undefined) throw new TemplateProblem('syntax', `undefined variable "${name}"`);
    return scope.get(name);
  }

  function assign(name: string, value: TemplateValue, isAssignment: boolean): void {
    budget.charge(scopes.length);
    const scope = isAssignment ? scopes.findLast((each) => each.has(name)) : scopes.at(-1);
    if (scope === undefined) throw new TemplateProblem('syntax', `undefined variable "${name}"`);
    scope.set(name, value);
  }

  function termValue(term: TemplateTerm, dot: TemplateValue): TemplateValue {
    budget.charge(units.step);
    switch (term.kind) {
      case 'dot':
        return dot;
      case 'value':
        return term.value;
      case 'variable':
        return lookUp(term.name);
      case 'pipe':
        return pipeValue(term.pipe, dot);
      case 'field':
        return fieldsOf(termValue(term.of, dot), term.names);
      case 'function':
      default:
        return callTemplateFunction(budget, term.name, []);
    }
  }

  function pipeValue({ commands, variables, isAssignment }: TemplatePipe, dot: TemplateValue) {
    let passed: TemplateValue;
    commands.forEach((command, at) => {
      passed = commandValue(command, at === 0 ? [] : [passed], dot);
    });
    if (variables.length === 1) assign(variables[0] ?? '', passed, isAssignment);
    return passed;
  }

  /** `piped` has the value of the command before, which is the last argument. */
  function commandValue(
    [first, ...terms]: TemplateCommand,
    piped: readonly TemplateValue[],
    dot: TemplateValue,
  ): TemplateValue {
    const isBare = terms.length + piped.length === 0;
    if (first.kind !== 'function') {
      if (isBare) return termValue(first, dot);
      throw new TemplateProblem('failed', "can't give argument to non-function");
    }
    budget.charge(units.step);
    const { name } = first;
    if ((name !== 'and' && name !== 'or') || isBare) {
      const values = terms.map((each) => termValue(each, dot));
      return callTemplateFunction(budget, name, [...values, ...piped]);
    }
    // Arguments after the one that decides are not evaluated.
    let value: TemplateValue;
    for (const term of terms) {
      value = termValue(term, dot);
      budget.chargeOwn(value);
      if (isEmptyValue(value) === (name === 'and')) return value;
    }
    return piped.length > 0 ? piped[0] : value;
  }

  function walk(list: readonly TemplateNode[], dot: TemplateValue): Leaving {
    for (const node of list) {
      budget.charge(units.step);
      if (node.kind === 'text') write(node.text);
      else if (node.kind === 'print') {
        const value = pipeValue(node.pipe, dot);
        if (node.pipe.variables.length > 0) continue;
        budget.chargeTree(value);
        write(shownValue(value));
      } else if ('pipe' in node) {
        const leaving = inScope(() => branch(node, dot));
        if (leaving !== undefined) return leaving;
      } else return node.kind;
    }
    return undefined;
  }

  function branch(
    node: Extract<TemplateNode, { readonly kind: 'if' | 'with' | 'range' }>,
    dot: TemplateValue,
  ): Leaving {
    if (node.kind === 'range') return range(node, dot);
    const value = pipeValue(node.pipe, dot);
    budget.chargeOwn(value);
    if (isEmptyValue(value)) return walk(node.otherwise, dot);
    return walk(node.body, node.kind === 'with' ? value : dot);
  }

  function range(
    { pipe, body, otherwise }: Extract<TemplateNode, { readonly kind: 'range' | 'if' | 'with' }>,
    dot: TemplateValue,
  ): Leaving {
    const value = pipeValue({ ...pipe, variables: [] }, dot);
    budget.chargeOwn(value);
    let isEmpty = true;
    for (const [key, item] of entriesOf(value)) {
      isEmpty = false;
      budget.charge(units.step);
      const [first, second] = pipe.variables;
      const leaving = inScope(() => {
        if (second !== undefined) {
          assign(first ?? '', key, false);
          assign(second, item, false);
        } else if (first !== undefined) assign(first, item, false);
        return walk(body, item);
      });
      if (leaving === 'break') break;
    }
    return isEmpty ? walk(otherwise, dot) : undefined;
  }

  walk(nodes, data);
  return written.join('');
}

function* entriesOf(value: TemplateValue): Generator<readonly [TemplateValue, TemplateValue]> {
  if (isNil(value)) return;
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) yield [BigInt(at), item];
  } else if (typeof value === 'bigint') {
    for (let at = 0n; at < value; at += 1n) yield [at, at];
  } else if (isDict(value)) {
    for (const key of Object.keys(value).toSorted()) yield [key, value[key]];
  } else throw new TemplateProblem('failed', `range can't iterate over ${typeOfValue(value)}`);
}

function fieldsOf(value: TemplateValue, names: readonly string[]): TemplateValue {
  let result = value;
  for (const name of names) result = fieldOf(result, name);
  return result;
}

function fieldOf(value: TemplateValue, name: string): TemplateValue {
  // A field of a missing value is missing; a field of null is an error.
  if (value === undefined) return undefined;
  if (value === null) {
    throw new TemplateProblem('failed', `nil pointer evaluating interface {}.${name}`);
  }
  if (isDict(value)) return ownField(value, name);
  const type = typeOfValue(value);
  throw new TemplateProblem('failed', `can't evaluate field ${name} in type ${type}`);
}
