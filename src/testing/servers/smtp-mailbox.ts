// Communication between the SMTP server process and its test: files in its folder, which survive a kill and keep no
// process alive.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** A mail as it was received. */
export interface ReceivedMail {
  /** The envelope's sender; empty for a bounce. */
  readonly from: string;
  /** The envelope's recipients. */
  readonly to: readonly string[];
  /** Headers and body, as they came over the wire. */
  readonly source: string;
}

/** 'acknowledgement' fails after the mail was recorded, which the client cannot know. */
export type SmtpStage = 'connect' | 'sender' | 'recipient' | 'data' | 'acknowledgement';

export interface SmtpRejection {
  readonly at: SmtpStage;
  /** The status code of the reply (451: retry, 550: permanent), or a disconnect without a reply. */
  readonly answer: number | 'hang-up';
}

export interface SmtpMailbox {
  /** Written by the server process when it listens. */
  setListening(pid: number): void;
  isListening(pid: number): boolean;
  record(mail: ReceivedMail): void;
  mails(): readonly ReceivedMail[];
  setRejection(rejection: SmtpRejection | undefined): void;
  rejection(): SmtpRejection | undefined;
}

export function openSmtpMailbox(folder: string): SmtpMailbox {
  const mailFolder = join(folder, 'mails');
  const rejectionFile = join(folder, 'rejection.json');
  const listeningFile = join(folder, 'listening.json');
  mkdirSync(mailFolder, { recursive: true });
  const names = (): string[] => readdirSync(mailFolder).filter((name) => name.endsWith('.json'));

  return {
    setListening: (pid) => writeWhole(listeningFile, pid),
    isListening: (pid) => existsSync(listeningFile) && readJson(listeningFile) === pid,
    record(mail) {
      const name = `${String(names().length + 1).padStart(8, '0')}.json`;
      writeWhole(join(mailFolder, name), mail);
    },
    mails: () =>
      names()
        .toSorted()
        .map((name) => readJson(join(mailFolder, name)) as ReceivedMail),
    setRejection: (rejection) => writeWhole(rejectionFile, rejection ?? null),
    rejection: () => (readJson(rejectionFile) as SmtpRejection | null) ?? undefined,
  };
}

/** Renamed into place, so no reader sees a partial file. */
function writeWhole(file: string, value: unknown): void {
  writeFileSync(`${file}.part`, JSON.stringify(value));
  renameSync(`${file}.part`, file);
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
