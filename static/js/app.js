// Starts what the page holds: a room, or the box from which a room is made.

import { Room } from "./room.js";
import { Welcome } from "./welcome.js";

const firstPrompt = document.getElementById("first-prompt");

if (document.getElementById("log")) new Room().start();
if (firstPrompt) new Welcome(firstPrompt).start();
