// Functions of templates over numbers.

import { randomInt } from 'node:crypto';
import {
  failed,
  float,
  functionLimits as limits,
  int,
  integer,
  shown,
  text,
  whole,
  type TemplateFunctions,
} from './arguments.ts';
import type { TemplateValue } from './values.ts';

const wrapped = (value: bigint): bigint => BigInt.asIntN(64, value);
const divisor = (value: TemplateValue): bigint =>
  whole(value) === 0n ? failed('integer divide by zero') : whole(value);

export const numberFunctions: TemplateFunctions = {
  add1: (value) => wrapped(whole(value) + 1n),
  sub: (first, second) => wrapped(whole(first) - whole(second)),
  div: (first, second) => wrapped(whole(first) / divisor(second)),
  mod: (first, second) => whole(first) % divisor(second),
  floor: (value) => Math.floor(float(value)),
  ceil: (value) => Math.ceil(float(value)),
  until: (count) => steps(0n, integer(count), integer(count) < 0n ? -1n : 1n),
  untilStep: (from, to, step) => steps(integer(from), integer(to), integer(step)),
  atoi: (value) => (/^[-+]?\d{1,18}$/.test(text(value)) ? BigInt(text(value)) : 0n),
  toDecimal: (value) => ofOctal(shown(value)),
  randInt(from, to) {
    const [low, high] = [integer(from), integer(to)];
    // The range of `randomInt`.
    if (high <= low || high - low >= 2n ** 48n) return failed('invalid argument to Intn');
    return low + BigInt(randomInt(Number(high - low)));
  },
};

/** Functions that take any number of arguments. */
export const numbersOfMany: TemplateFunctions = {
  add: (...values) => wrapped(values.reduce<bigint>((sum, value) => sum + whole(value), 0n)),
  mul: (first, ...values) =>
    values.reduce<bigint>((product, value) => wrapped(product * whole(value)), whole(first)),
  max: (first, ...values) => largest(first, values),
  biggest: (first, ...values) => largest(first, values),
  min: (first, ...values) => values.map(whole).reduce((a, b) => (b < a ? b : a), whole(first)),
  maxf: (first, ...values) => Math.max(float(first), ...values.map(float)),
  minf: (first, ...values) => Math.min(float(first), ...values.map(float)),
  round: (value, digits, ...on) => rounded(float(value), int(digits), on[0]),
  seq: (...values) => sequence(values.map(integer)),
};

function largest(first: TemplateValue, values: readonly TemplateValue[]): bigint {
  return values.map(whole).reduce((a, b) => (b > a ? b : a), whole(first));
}

function rounded(value: number, digits: number, on: TemplateValue): number {
  const roundOn = on === undefined ? 0.5 : float(on);
  const power = 10 ** digits;
  const digit = power * value;
  const up = digit - Math.trunc(digit) >= roundOn;
  return (up ? Math.ceil(digit) : Math.floor(digit)) / power;
}

/** Integers, not floating-point numbers, of which a large one plus one is the same number. */
function steps(from: bigint, to: bigint, step: bigint): TemplateValue[] {
  const isUp = to >= from;
  const count = step === 0n ? 0n : (to - from) / step;
  if ((count < 0n ? -count : count) > limits.loopsMax) {
    return failed(`too many iterations in untilStep; max allowed is ${limits.loopsMax}`);
  }
  const result: TemplateValue[] = [];
  if (step === 0n || isUp !== step > 0n) return result;
  for (let at = from; isUp ? at < to : at > to; at += step) result.push(at);
  return result;
}

function sequence(values: readonly bigint[]): string {
  const [first = 0n, second = 0n, third = 0n] = values;
  const joined = (from: bigint, to: bigint, step: bigint): string =>
    steps(from, to, step).map(String).join(' ');
  if (values.length === 1) {
    const way = first < 1n ? -1n : 1n;
    return joined(1n, first + way, way);
  }
  if (values.length === 2) {
    const way = second < first ? -1n : 1n;
    return joined(first, second + way, way);
  }
  if (values.length !== 3) return '';
  if (third >= first) return joined(first, third + 1n, second);
  return second > 0n ? '' : joined(first, third - 1n, second);
}

function ofOctal(value: string): bigint {
  const [, sign = '', digits = ''] = /^([-+]?)([0-7]{1,21})$/.exec(value) ?? [];
  if (digits === '') return 0n;
  return BigInt(`0o${digits}`) * (sign === '-' ? -1n : 1n);
}
