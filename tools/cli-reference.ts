// Generates the last chapter of docs/cli.md from the table of commands.

import { commands } from '../src/cli/commands/index.ts';
import type { Command } from '../src/cli/command.ts';

const title = '## All commands';

/** Returns the page with a new last chapter. */
export function withCliReference(page: string): string {
  const [head = ''] = page.split(`${title}\n`);
  return `${head}${title}\n\n${commands.map(chapter).join('\n')}`;
}

function chapter({ name, summary, usage, options, examples }: Command): string {
  const rows = Object.entries(options).map(([option, { value, summary: text }]) => {
    const shown = value === undefined ? `--${option}` : `--${option} <${value}>`;
    return `| \`${cell(shown)}\` | ${cell(text)} |\n`;
  });
  return [
    `### \`millrace ${name}\`\n\n`,
    `${summary[0]?.toUpperCase() ?? ''}${summary.slice(1)}.\n\n`,
    '```sh\n',
    `millrace ${usage}\n`,
    '```\n\n',
    ...(rows.length === 0 ? [] : ['| option | meaning |\n|---|---|\n', ...rows, '\n']),
    `For example:\n\n\`\`\`sh\n${examples.join('\n')}\n\`\`\`\n`,
  ].join('');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
