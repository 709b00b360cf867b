// All cases of ntfy's API, which run against our server and against ntfy itself.

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
