import { cliCases } from './cli-cases.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';

cliCases('sqlite', openSqliteRig);
