// How the seven minutes of `npm test` are divided, on two otherwise idle cores.

export interface BudgetPart {
  readonly name: string;
  readonly seconds: number;
  /** The files of this part; the first part takes what no other part names. */
  readonly files?: RegExp;
}

export const budgetSeconds = 420;

export const budget: readonly BudgetPart[] = [
  { name: 'checks and core', seconds: 270 },
  { name: 'security', seconds: 30, files: /^test\/security\// },
  {
    name: 'PostgreSQL bus and tasks',
    seconds: 40,
    files: /^src\/engines\/postgres\/.*(?:bus|tasks)/,
  },
  {
    name: 'stacks of the documents',
    seconds: 20,
    files: /^test\/nest\/|^test\/scenarios\/eventstoredb-/,
  },
  { name: 'console', seconds: 60, files: /^(?:src|test)\/console\// },
];

export function partOf(name: string): BudgetPart {
  const [first, ...others] = budget as readonly [BudgetPart, ...BudgetPart[]];
  return others.find(({ files }) => files?.test(name) === true) ?? first;
}
