// `millrace tour`: the contracts, shown by calling them.

import { exitCodes, readArgs, type Command } from './command.ts';

export const tourCommand: Command = {
  name: 'tour',
  summary: 'walks through the contracts by calling them',
  usage: 'tour',
  options: {},
  examples: ['millrace tour'],
  async run({ args, stdout, paint }) {
    readArgs({ name: 'tour', args }, {});
    // Loaded here, as in every command: asking for help must not wait for all contracts.
    const { tourStops } = await import('./tour-stops.ts');
    stdout.write(`${paint.bold('Millrace')}: append an event once, and everything else follows.\n`);
    for (const { title, show } of tourStops) {
      stdout.write(`\n${paint.bold(paint.cyan(title))}\n`);
      for (const { call, result, isRefused } of await show()) {
        const shown = isRefused === true ? paint.yellow(result) : paint.green(result);
        stdout.write(`${call === '' ? '' : `  ${paint.dim(call)}\n`}    ${shown}\n`);
      }
    }
    stdout.write(
      [
        '',
        paint.bold('Try next'),
        '  npm run millrace -- new aggregate banking currency --dir .millrace/try',
        '  npm run millrace -- lint src',
        '  npm run millrace -- help',
        '',
      ].join('\n'),
    );
    return exitCodes.ok;
  },
};
