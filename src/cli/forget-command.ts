// `millrace forget`: destroys a person's key; what it sealed reads as forgotten from now on.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = {
  ...storeOption,
  yes: { type: 'boolean', summary: 'says that it is meant' },
  ...jsonOption,
} as const;

export const forgetCommand: Command = {
  name: 'forget',
  summary: "destroys a person's key: the payloads that it sealed cannot be read again",
  usage: 'forget <subject> --yes',
  options,
  examples: ['millrace forget customer-4711 --yes'],
  sections: storeSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name: 'forget', args: context.args }, options);
    const [subject, ...rest] = positionals;
    if (subject === undefined || subject === '' || rest.length > 0) {
      throw usage('forget takes one subject: the dataSubject header of the events');
    }
    if (values.yes !== true) {
      throw usage(`nothing brings the data of '${subject}' back: pass --yes if that is meant`);
    }
    await using store = await openExistingStore(context, values.store);
    const { forgotten } = await store.forget(subject);
    const said = forgotten
      ? `${paint.green('forgot')} ${subject}`
      : `there was nothing to forget of ${subject}; new data is refused from now on`;
    stdout.write(
      values.json === true ? `${JSON.stringify({ subject, forgotten })}\n` : `${said}\n`,
    );
    return exitCodes.ok;
  },
};
