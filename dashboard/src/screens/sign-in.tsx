import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { setToken } from "../api/request.ts";

/** Asks for a token. It is kept for this tab, and sent with each request. */
export function SignIn({ done, wasRefused }: { done(): void; readonly wasRefused: boolean }): VNode {
  const [token, setText] = useState("");
  return (
    <main class="main sign-in">
      <form
        class="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          setToken(token.trim());
          done();
        }}
      >
        <h1>Escapement</h1>
        <p class="soft">Sign in to continue.</p>
        <label class="field">
          Token
          <input
            type="password"
            autoComplete="current-password"
            value={token}
            aria-invalid={wasRefused}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <span class="small soft">The token is kept in this tab until you close it.</span>
        </label>
        {wasRefused && (
          <p class="notice bad" role="alert">
            That token was not accepted.
          </p>
        )}
        <div>
          <button type="submit" class="primary" disabled={token.trim() === ""}>
            Sign in
          </button>
        </div>
      </form>
    </main>
  );
}
