/** `npm run bench`: davgate and its peers in one run, interleaved. */
import { cpus } from 'node:os';
import { ChoiceError, choose, type Works } from './choice.ts';
import { benchLocally, LOCAL_WORKS } from './local.ts';
import { benchRemotely, REMOTE_WORKS } from './remote/bench.ts';
import { benchScaling, SCALING_WORKS } from './scaling.ts';
import { benchSeveral, SEVERAL_WORKS } from './several.ts';

/** Exit code for an invalid command line, as in davgate. */
const EXIT_UNUSABLE = 2;

function chosen(): Works {
  try {
    return choose(process.argv.slice(2), {
      remote: REMOTE_WORKS,
      local: LOCAL_WORKS,
      scaling: SCALING_WORKS,
      several: SEVERAL_WORKS,
    });
  } catch (error) {
    if (!(error instanceof ChoiceError)) throw error;
    console.error(`bench: ${error.message}`);
    process.exit(EXIT_UNUSABLE);
  }
}

const { remote, local, scaling, several } = chosen();
console.log(`${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown kind'}, Node ${process.version}\n`);
if (remote.length > 0) await benchRemotely(remote);
if (local.length > 0) await benchLocally(local);
if (scaling.length > 0) await benchScaling(scaling);
if (several.length > 0) await benchSeveral(several);
