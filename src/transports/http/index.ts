export { signMessage } from "./facts-signature.ts";
export { type HttpOptions, http } from "./route.ts";
export { signWebhook, verifyWebhook } from "./signature.ts";
