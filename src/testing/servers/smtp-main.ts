// The SMTP server's process: `node smtp-main.ts <host> <port> <folder>`.

import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { SMTPServerSession } from 'smtp-server';
import { loadDriver } from '../../foundation/load-driver.ts';
import { openSmtpMailbox, type SmtpStage } from './smtp-mailbox.ts';

const [host = '', port, folder = ''] = process.argv.slice(2);
const { SMTPServer } = await loadDriver('smtp-server', () => import('smtp-server'));
const mailbox = openSmtpMailbox(folder);
const sockets = new Map<number | undefined, Socket>();

type Answer = (error?: Error | null) => void;

const server = new SMTPServer({
  disableReverseLookup: true,
  disabledCommands: ['STARTTLS'],
  authOptional: true,
  allowInsecureAuth: true,
  logger: false,
  onAuth: (auth, _session, answer) => answer(null, { user: auth.username }),
  onConnect: (session, answer) => pass('connect', session, answer),
  onMailFrom: (_address, session, answer) => pass('sender', session, answer),
  onRcptTo: (_address, session, answer) => pass('recipient', session, answer),
  onData: (stream, session, answer) => {
    text(stream).then((source) => receive(source, session, answer), answer);
  },
});

server.server.on('connection', (socket) => {
  const { remotePort } = socket;
  sockets.set(remotePort, socket);
  socket.once('close', () => sockets.delete(remotePort));
});
// A disconnected client is normal; failing to listen is not.
server.on('error', (error) => {
  process.stderr.write(`${String(error)}\n`);
  if (!server.server.listening) process.exit(1);
});
process.once('SIGTERM', () => server.close(() => process.exit()));
server.listen(Number(port), host, () => mailbox.setListening(process.pid));

function receive(source: string, session: SMTPServerSession, answer: Answer): void {
  pass('data', session, (refused) => {
    if (refused !== undefined && refused !== null) {
      answer(refused);
      return;
    }
    const { mailFrom, rcptTo } = session.envelope;
    const from = mailFrom === false ? '' : mailFrom.address;
    mailbox.record({ from, to: rcptTo.map((recipient) => recipient.address), source });
    pass('acknowledgement', session, answer);
  });
}

/** Continues unless the test wants a refusal at this stage. */
function pass(stage: SmtpStage, session: SMTPServerSession, answer: Answer): void {
  const refusal = mailbox.refusal();
  if (refusal?.at !== stage) answer();
  else if (refusal.answer === 'hang-up') sockets.get(session.remotePort)?.destroy();
  else answer(Object.assign(new Error('refused by the test'), { responseCode: refusal.answer }));
}
