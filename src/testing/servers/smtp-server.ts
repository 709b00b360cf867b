// A temporary SMTP server that stores mails and rejects them on demand.

import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../foundation/clock.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { launchServer, type ServerOptions } from './launch-server.ts';
import { loopback } from './reserve-port.ts';
import type { ServerProcess } from './server-process.ts';
import { openSmtpMailbox, type ReceivedMail, type SmtpRejection } from './smtp-mailbox.ts';

export interface SmtpOptions extends Omit<ServerOptions, 'programFolders'> {
  /** Rejects clients from the start, before the first one connects. */
  readonly reject?: SmtpRejection | undefined;
}

export interface SmtpServer extends ServerProcess {
  /** `smtp://127.0.0.1:<port>` */
  readonly url: string;
  /** All mails that were received so far, oldest first, also those before a kill. */
  messages(): readonly ReceivedMail[];
  /** Resolves with all mails as soon as there are at least `count`. */
  whenReceived(count: number, signal?: AbortSignal): Promise<readonly ReceivedMail[]>;
  /** From now on rejects every client at this stage. */
  reject(rejection: SmtpRejection): void;
  /** From now on accepts everything again. */
  accept(): void;
}

const pollIntervalMs = 10;

/**
 * Starts an SMTP server for a test. It needs the package `smtp-server`.
 *
 * @example
 * import { startSmtp } from 'millrace/testing';
 *
 * await using smtp = await startSmtp();
 * smtp.reject({ at: 'recipient', answer: 451 });
 * // … the mail is sent, rejected, and due for a retry …
 * smtp.accept();
 * const [mail] = await smtp.whenReceived(1, AbortSignal.timeout(5_000));
 * console.log(mail?.to, mail?.source);
 */
export async function startSmtp(options: SmtpOptions = {}): Promise<SmtpServer> {
  // Resolve the package here, so the error names the package to install.
  await loadDriver('smtp-server', async () => import.meta.resolve('smtp-server'));
  const script = new URL(`./smtp-main${extname(import.meta.url)}`, import.meta.url);

  const server = await launchServer(options, async ({ folder, port }) => {
    const mailbox = openSmtpMailbox(folder);
    mailbox.setRejection(options.reject);
    return {
      name: 'smtp-server',
      program: process.execPath,
      args: [fileURLToPath(script), loopback, String(port), folder],
      stopSignal: 'SIGTERM',
      discardSignal: 'SIGKILL',
      isReady: async (pid) => mailbox.isListening(pid),
    };
  });
  const mailbox = openSmtpMailbox(server.folder);
  return Object.assign(server, {
    url: `smtp://${server.host}:${server.port}`,
    messages: () => mailbox.mails(),
    async whenReceived(count: number, signal?: AbortSignal) {
      for (;;) {
        const mails = mailbox.mails();
        if (mails.length >= count) return mails;
        await systemClock.sleep(pollIntervalMs, signal);
      }
    },
    reject: (rejection: SmtpRejection) => mailbox.setRejection(rejection),
    accept: () => mailbox.setRejection(undefined),
  });
}
