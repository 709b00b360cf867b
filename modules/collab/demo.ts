// What somebody who runs the module writes: here with mails where the environment names a server for them.
// `sample` fills it.

import { smtpDestination } from 'millrace/adapters/smtp';
import { collab } from './collab.ts';
import { composeMail } from './notification-mail.ts';

export { sampleWorkspace as sample } from './sample-workspace.ts';

export async function demo(smtpUrl?: string): Promise<ReturnType<typeof collab>> {
  if (smtpUrl === undefined) return collab();
  const from = 'Mill <mill@example.org>';
  return collab({
    email: await smtpDestination({ transport: smtpUrl, from, compose: composeMail }),
  });
}

export default await demo(process.env['COLLAB_SMTP_URL']);
