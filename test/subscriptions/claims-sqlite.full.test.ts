import { claimCases } from './claim-cases.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';

claimCases('sqlite', openSqliteRig);
