// The work that the templates of one message may do. One unit is about ten nanoseconds of CPU time.

import { TemplateProblem } from './syntax.ts';
import { isDict, isTime, type TemplateValue } from './values.ts';

export const budgetLimits = {
  unitsMax: 1_500_000,
  /** Values are walked recursively: a deeper value could exhaust the stack. */
  valueDepthMax: 200,
} as const;

/** What the smallest pieces of work cost. */
export const units = {
  step: 20,
  call: 60,
  item: 6,
  key: 40,
  /** `Intl` formats times slowly. */
  time: 20_000,
} as const;

export interface TemplateBudget {
  readonly spent: number;
  /** Throws the problem that ends the rendering if the budget is spent. */
  charge(amount: number): void;
  /** Charges the characters, items or keys of a value, without what is in them. */
  chargeOwn(value: TemplateValue): void;
  /**
   * Charges the value and all values in it, as often as they occur: a walk visits a shared value each time. `forbidden` must
   * not be among them.
   */
  chargeTree(value: TemplateValue, forbidden?: TemplateValue): void;
}

export function createTemplateBudget(unitsMax: number = budgetLimits.unitsMax): TemplateBudget {
  let spent = 0;

  function charge(amount: number): void {
    if (spent + amount > unitsMax) throw new TemplateProblem('endless', 'too much work');
    spent += amount;
  }

  function chargeTree(value: TemplateValue, forbidden: TemplateValue, depth: number): void {
    charge(units.item + (isTime(value) ? units.time : ownUnits(value)));
    if (typeof value !== 'object' || value === null || isTime(value)) return;
    if (value === forbidden) throw new TemplateProblem('failed', 'a value cannot contain itself');
    if (depth >= budgetLimits.valueDepthMax) {
      throw new TemplateProblem('failed', 'the value is nested too deeply');
    }
    if (Array.isArray(value)) for (const item of value) chargeTree(item, forbidden, depth + 1);
    else {
      for (const [key, item] of Object.entries(value)) {
        charge(key.length);
        chargeTree(item, forbidden, depth + 1);
      }
    }
  }

  return {
    get spent() {
      return spent;
    },
    charge,
    chargeOwn: (value) => {
      charge(ownUnits(value));
    },
    chargeTree: (value, forbidden) => {
      chargeTree(value, forbidden, 0);
    },
  };
}

function ownUnits(value: TemplateValue): number {
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value)) return value.length * units.item;
  return isDict(value) ? Object.keys(value).length * units.key : 0;
}
