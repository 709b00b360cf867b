// Help, from the table of commands.

import type { Command, Options } from './command.ts';
import type { Paint } from './paint.ts';

export function overview(commands: readonly Command[], paint: Paint): string {
  const rows = commands.map(({ name, summary }) => [name, summary] as const);
  return [
    `${paint.bold('millrace')}: the event backbone for TypeScript teams`,
    '',
    paint.bold('Usage'),
    '  millrace <command> [options]',
    '',
    paint.bold('Commands'),
    ...table([...rows, ['help <command>', 'shows how to use a command']], paint),
    '',
    paint.bold('Options'),
    ...table(
      [
        ['-h, --help', 'shows this, or the help of a command'],
        ['-v, --version', 'shows the version'],
      ],
      paint,
    ),
    '',
  ].join('\n');
}

export function commandHelp(command: Command, paint: Paint): string {
  const lines = [
    `${paint.bold(`millrace ${command.name}`)}: ${command.summary}`,
    '',
    paint.bold('Usage'),
    `  millrace ${command.usage}`,
    '',
  ];
  const sections = [
    {
      title: 'Options',
      rows: [...optionRows(command.options), ['-h, --help', 'shows this'] as const],
    },
    ...(command.sections ?? []),
  ];
  for (const { title, rows } of sections) lines.push(paint.bold(title), ...table(rows, paint), '');
  lines.push(paint.bold('Examples'), ...command.examples.map((example) => `  ${example}`), '');
  return lines.join('\n');
}

function optionRows(options: Options): (readonly [string, string])[] {
  return Object.entries(options).map(([name, { value, summary }]) => [
    value === undefined ? `--${name}` : `--${name} <${value}>`,
    summary,
  ]);
}

function table(rows: readonly (readonly [string, string])[], paint: Paint): string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${paint.cyan(left.padEnd(width))}${right}`);
}
