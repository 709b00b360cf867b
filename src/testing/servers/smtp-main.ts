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

type Reply = (error?: Error | null) => void;

const server = new SMTPServer({
  disableReverseLookup: true,
  disabledCommands: ['STARTTLS'],
  authOptional: true,
  allowInsecureAuth: true,
  logger: false,
  onAuth: (auth, _session, reply) => reply(null, { user: auth.username }),
  onConnect: (session, reply) => pass('connect', session, reply),
  onMailFrom: (_address, session, reply) => pass('sender', session, reply),
  onRcptTo: (_address, session, reply) => pass('recipient', session, reply),
  onData: (stream, session, reply) => {
    text(stream).then((source) => receive(source, session, reply), reply);
  },
});

server.server.on('connection', (socket) => {
  const { remotePort } = socket;
  sockets.set(remotePort, socket);
  socket.once('close', () => sockets.delete(remotePort));
});
// Ignore a disconnected client; report a failure to listen.
server.on('error', (error) => {
  process.stderr.write(`${String(error)}\n`);
  if (!server.server.listening) process.exit(1);
});
process.once('SIGTERM', () => server.close(() => process.exit()));
server.listen(Number(port), host, () => mailbox.setListening(process.pid));

function receive(source: string, session: SMTPServerSession, reply: Reply): void {
  pass('data', session, (error) => {
    if (error !== undefined && error !== null) {
      reply(error);
      return;
    }
    const { mailFrom, rcptTo } = session.envelope;
    const from = mailFrom === false ? '' : mailFrom.address;
    mailbox.record({ from, to: rcptTo.map((recipient) => recipient.address), source });
    pass('acknowledgement', session, reply);
  });
}

/** Continues unless the test requests a rejection at this stage. */
function pass(stage: SmtpStage, session: SMTPServerSession, reply: Reply): void {
  const rejection = mailbox.rejection();
  if (rejection?.at !== stage) reply();
  else if (rejection.answer === 'hang-up') sockets.get(session.remotePort)?.destroy();
  else reply(Object.assign(new Error('rejected by the test'), { responseCode: rejection.answer }));
}
