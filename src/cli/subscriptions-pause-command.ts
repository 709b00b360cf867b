// `millrace subscriptions pause` and `resume`: processes that run it notice within about a second.

import { exitCodes, readArgs, type Command } from './command.ts';
import { onRecord } from './on-record.ts';
import { openSubscriptions, subscriptionArgument } from './open-subscriptions.ts';
import { jsonOption, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const subscriptionsPauseCommand = switchCommand('pause', {
  summary: 'lets handlers under way finish and begins no other, in all processes',
  done: 'paused',
});

export const subscriptionsResumeCommand = switchCommand('resume', {
  summary: 'goes on with a subscription that was paused',
  done: 'resumed',
});

function switchCommand(
  verb: 'pause' | 'resume',
  { summary, done }: { readonly summary: string; readonly done: string },
): Command {
  const name = `subscriptions ${verb}`;
  return {
    name,
    summary,
    usage: `${name} <subscription>`,
    options,
    examples: [`millrace ${name} sub:core-lookup:currency-projection:v1`],
    sections: storeSections,
    async run(context) {
      const { stdout, paint } = context;
      const { values, positionals } = readArgs({ name, args: context.args }, options);
      const subscription = subscriptionArgument(name, positionals);
      await using subscriptions = await openSubscriptions(context, values.store);
      const deed = { action: `subscription.${verb}`, target: subscription };
      await onRecord(subscriptions.store, deed, () => subscriptions.admin[verb](subscription));
      const answer = { subscription, paused: verb === 'pause' };
      stdout.write(
        values.json === true
          ? `${JSON.stringify(answer)}\n`
          : `${paint.green(done)} ${subscription}\n`,
      );
      return exitCodes.ok;
    },
  };
}
