import { refused } from './ntfy-problems.ts';

const numbers: Readonly<Record<string, number>> = {
  '1': 1,
  min: 1,
  '2': 2,
  low: 2,
  '3': 3,
  default: 3,
  '4': 4,
  high: 4,
  '5': 5,
  max: 5,
  urgent: 5,
};

/** By number or name; undefined where none was said. */
export function parsePriority(text: string): number | undefined {
  const name = text.trim().toLowerCase();
  if (name === '') return undefined;
  const number = Object.hasOwn(numbers, name) ? numbers[name] : undefined;
  if (number === undefined) throw refused('priorityInvalid');
  return number;
}
