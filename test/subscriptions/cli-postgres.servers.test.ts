import { cliCases } from './cli-cases.ts';
import { openPostgresRig } from './open-postgres-rig.ts';

cliCases('postgres', openPostgresRig);
