// Every case of ntfy's API: run against our server, and against ntfy's own.

import { adminCases } from './ntfy-admin-cases.ts';
import type { NtfyCase } from './ntfy-case.ts';
import { changeCases, delayCases, templateCases } from './ntfy-later-cases.ts';
import { jsonCases, publishCases } from './ntfy-publish-cases.ts';
import {
  accessCases,
  factCases,
  fileCases,
  followCases,
  jsonTakenCases,
  readCases,
} from './ntfy-read-cases.ts';

import { templateFunctionCases } from './ntfy-template-cases.ts';

export const ntfyCases: readonly NtfyCase[] = [
  ...publishCases,
  ...jsonCases,
  ...jsonTakenCases,
  ...delayCases,
  ...changeCases,
  ...templateCases,
  ...templateFunctionCases,
  ...readCases,
  ...followCases,
  ...accessCases,
  ...fileCases,
  ...factCases,
  ...adminCases,
];

/**
 * The cases that write and read messages again. Parsing, rules and templates end before a message is
 * stored, so they are the same in every durability.
 */
export const storedCases: readonly NtfyCase[] = [
  ...jsonTakenCases,
  ...delayCases,
  ...changeCases,
  ...readCases,
  ...followCases,
  ...fileCases,
];
