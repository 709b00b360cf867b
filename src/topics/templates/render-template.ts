// Renders a template with the JSON that a publisher sent, with limits on steps and output.

import { ntfyError } from '../ntfy-problems.ts';
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
  stepsMax: 200_000,
} as const;

type Leaving = 'break' | 'continue' | undefined;

/** Throws the problem with which ntfy rejects the message. */
export function renderTemplate(template: string, body: string, name: string): string {
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
    return run(nodes, data).replaceAll('\\n', '\n').trim();
  } catch (error) {
    if (!(error instanceof TemplateProblem)) throw error;
    if (error.kind === 'syntax') throw ntfyError('templateInvalid', error.message);
    if (error.kind === 'disallowed') throw ntfyError('templateDisallowed');
    if (error.kind === 'endless') throw ntfyError('templateTimeout');
    throw ntfyError('templateFailed', `template ${name}: ${error.message}`);
  }
}

function run(nodes: readonly TemplateNode[], data: TemplateValue): string {
  const written: string[] = [];
  let length = 0;
  let steps = 0;
  const scopes: Map<string, TemplateValue>[] = [new Map([['$', data]])];

  const step = (): void => {
    steps += 1;
    if (steps > templateLimits.stepsMax) throw new TemplateProblem('endless', 'too many steps');
  };
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
    const scope = scopes.findLast((each) => each.has(name));
    if (scope === undefined) throw new TemplateProblem('syntax', `undefined variable "${name}"`);
    return scope.get(name);
  }

  function assign(name: string, value: TemplateValue, isAssignment: boolean): void {
    const scope = isAssignment ? scopes.findLast((each) => each.has(name)) : scopes.at(-1);
    if (scope === undefined) throw new TemplateProblem('syntax', `undefined variable "${name}"`);
    scope.set(name, value);
  }

  function termValue(term: TemplateTerm, dot: TemplateValue): TemplateValue {
    step();
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
        return fieldOf(termValue(term.of, dot), term.name);
      case 'function':
      default:
        return callTemplateFunction(term.name, []);
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
    step();
    const { name } = first;
    if ((name !== 'and' && name !== 'or') || isBare) {
      const values = terms.map((each) => termValue(each, dot));
      return callTemplateFunction(name, [...values, ...piped]);
    }
    // Arguments after the one that decides are not evaluated.
    let value: TemplateValue;
    for (const term of terms) {
      value = termValue(term, dot);
      if (isEmptyValue(value) === (name === 'and')) return value;
    }
    return piped.length > 0 ? piped[0] : value;
  }

  function walk(list: readonly TemplateNode[], dot: TemplateValue): Leaving {
    for (const node of list) {
      step();
      if (node.kind === 'text') write(node.text);
      else if (node.kind === 'print') {
        const value = pipeValue(node.pipe, dot);
        if (node.pipe.variables.length === 0) write(shownValue(value));
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
    if (isEmptyValue(value)) return walk(node.otherwise, dot);
    return walk(node.body, node.kind === 'with' ? value : dot);
  }

  function range(
    { pipe, body, otherwise }: Extract<TemplateNode, { readonly kind: 'range' | 'if' | 'with' }>,
    dot: TemplateValue,
  ): Leaving {
    const value = pipeValue({ ...pipe, variables: [] }, dot);
    const entries = entriesOf(value);
    if (entries.length === 0) return walk(otherwise, dot);
    for (const [key, item] of entries) {
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
    return undefined;
  }

  walk(nodes, data);
  return written.join('');
}

function entriesOf(value: TemplateValue): readonly (readonly [TemplateValue, TemplateValue])[] {
  if (isNil(value)) return [];
  if (Array.isArray(value)) return value.map((item, at) => [BigInt(at), item] as const);
  if (typeof value === 'bigint') {
    const count = Math.min(Number(value), templateLimits.stepsMax);
    return Array.from({ length: Math.max(0, count) }, (_, at) => [BigInt(at), BigInt(at)] as const);
  }
  if (isDict(value)) {
    return Object.keys(value)
      .toSorted()
      .map((key) => [key, value[key]] as const);
  }
  throw new TemplateProblem('failed', `range can't iterate over ${shownValue(value)}`);
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
