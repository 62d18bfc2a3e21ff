import { expect } from 'vitest';
import type { ModelEntry } from '../storage/model.ts';
import { entryOutcome, type Shown } from './api.ts';
import { bytesOf, type Step } from './steps.ts';
import { type CommitFields, prefixed, type TreeRun } from './tree-run.ts';

interface ModelSession {
  readonly id: string;
  readonly concurrent: boolean;
  text: string;
  closed: boolean;
}

/** Id of no session. */
const NONE = 'pid_upload_session:none';

type StepOf<Name extends Step['do']> = Extract<Step, { readonly do: Name }>;

/** The upload sessions of a run. A concurrent session gets all of its bytes in one last piece. */
export class SessionRun {
  sessions: ModelSession[] = [];

  constructor(private readonly tree: TreeRun) {}

  async start({ text: label, close, kind }: StepOf<'start'>): Promise<void> {
    const text = bytesOf(label);
    const concurrent = kind === 'concurrent';
    const argument = { close, session_type: kind };
    const answer = await this.tree.api.upload<{ session_id: string }>(
      'files/upload_session/start',
      argument,
      text,
    );
    if (concurrent && close) return expect(answer).toBe('concurrent_session_close_not_allowed');
    if (concurrent && text !== '') return expect(answer).toBe('concurrent_session_data_not_allowed');
    if (typeof answer === 'string') throw new Error(`start: ${answer}`);
    this.sessions.push({ id: answer.session_id, concurrent, text, closed: close });
  }

  async append({ session: index, text: label, shift, close }: StepOf<'append'>): Promise<void> {
    const text = bytesOf(label);
    const session = this.sessions[index];
    const isLast = close || session?.concurrent === true;
    const offset = session?.concurrent ? 0 : (session?.text.length ?? 0) + shift;
    const answer = await this.tree.api.upload(
      'files/upload_session/append_v2',
      { cursor: { session_id: session?.id ?? NONE, offset }, close: isLast },
      text,
    );
    if (!session) return expect(answer).toBe('not_found');
    if (session.concurrent) return this.#expectLastPiece(session, text, answer);
    if (session.closed) return expect(answer).toBe('closed');
    if (shift !== 0) return expect(answer).toBe('incorrect_offset');
    expect(answer).toBeNull();
    session.text += text;
    session.closed = close;
  }

  async finish(step: StepOf<'finish'>): Promise<void> {
    const session = this.sessions[step.session];
    // Only an open sequential session takes bytes in finish.
    const text = session && !session.closed && !session.concurrent ? bytesOf(step.text) : '';
    const cursor = { session_id: session?.id ?? NONE, offset: session?.text.length ?? 0 };
    const argument = { cursor, commit: this.tree.commit(step) };
    const answer = await this.tree.api.upload<Shown>('files/upload_session/finish', argument, text);
    if (session) session.text += text;
    this.tree.expectSame(answer, this.#expected(step, session, false));
  }

  async finishBatch({ session: first, commits }: StepOf<'finish-batch'>): Promise<void> {
    const asked = commits.map((commit, index) => ({ commit, session: this.sessions[first + index] }));
    const entries = asked.map(({ commit, session }) => ({
      cursor: { session_id: session?.id ?? NONE, offset: session?.text.length ?? 0 },
      commit: this.tree.commit(commit),
    }));
    const answer = await this.tree.api.rpc<{ entries: unknown[] }>('files/upload_session/finish_batch_v2', {
      entries,
    });
    if (typeof answer === 'string') throw new Error(`finish_batch_v2: ${answer}`);
    expect(answer.entries).toHaveLength(entries.length);
    for (const [index, { commit, session }] of asked.entries()) {
      const expected = this.#expected(commit, session, true);
      this.tree.expectSame(entryOutcome(answer.entries[index]) as Shown | string, expected);
    }
  }

  /** Returns the expected outcome. A session ends with its commit and stays when that is refused. */
  #expected(
    commit: CommitFields,
    session: ModelSession | undefined,
    mustBeClosed: boolean,
  ): ModelEntry | string {
    if (!session || !this.sessions.includes(session)) return 'lookup_failed/not_found';
    if (!session.closed && mustBeClosed) return 'lookup_failed/not_closed';
    if (!session.closed && session.concurrent) return 'concurrent_session_not_closed';
    const outcome = prefixed('path/', this.tree.expectedCommit(commit, session.text));
    if (typeof outcome !== 'string') this.sessions = this.sessions.filter((other) => other !== session);
    return outcome;
  }

  #expectLastPiece(session: ModelSession, text: string, answer: unknown): void {
    // Repeating the same close succeeds; another size is refused.
    const isOther = session.closed && session.text.length !== text.length;
    expect(answer).toBe(isOther ? 'closed' : null);
    if (isOther) return;
    session.text = text;
    session.closed = true;
  }
}
