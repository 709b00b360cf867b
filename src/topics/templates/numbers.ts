// Functions of templates over numbers.

import { randomInt } from 'node:crypto';
import {
  failed,
  float,
  functionLimits as limits,
  int,
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
  until: (count) => steps(0, int(count), int(count) < 0 ? -1 : 1),
  untilStep: (from, to, step) => steps(int(from), int(to), int(step)),
  atoi: (value) => (/^[-+]?\d{1,18}$/.test(text(value)) ? BigInt(text(value)) : 0n),
  toDecimal: (value) => ofOctal(shown(value)),
  randInt(from, to) {
    const [low, high] = [int(from), int(to)];
    return high > low ? BigInt(randomInt(low, high)) : failed('invalid argument to Intn');
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
  seq: (...values) => sequence(values.map(int)),
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

function steps(from: number, to: number, step: number): TemplateValue[] {
  if (step === 0) return [];
  if (Math.abs(to - from) / Math.abs(step) > limits.loopsMax) {
    return failed(`too many iterations in untilStep; max allowed is ${limits.loopsMax}`);
  }
  const result: TemplateValue[] = [];
  const isUp = to >= from;
  if (isUp !== step > 0) return result;
  for (let at = from; isUp ? at < to : at > to; at += step) result.push(BigInt(at));
  return result;
}

function sequence(values: readonly number[]): string {
  const [first = 0, second = 0, third = 0] = values;
  const joined = (from: number, to: number, step: number): string =>
    steps(from, to, step).map(String).join(' ');
  if (values.length === 1) {
    const way = first < 1 ? -1 : 1;
    return joined(1, first + way, way);
  }
  if (values.length === 2) {
    const way = second < first ? -1 : 1;
    return joined(first, second + way, way);
  }
  if (values.length !== 3) return '';
  if (third >= first) return joined(first, third + 1, second);
  return second > 0 ? '' : joined(first, third - 1, second);
}

function ofOctal(value: string): bigint {
  const [, sign = '', digits = ''] = /^([-+]?)([0-7]{1,21})$/.exec(value) ?? [];
  if (digits === '') return 0n;
  return BigInt(`0o${digits}`) * (sign === '-' ? -1n : 1n);
}
