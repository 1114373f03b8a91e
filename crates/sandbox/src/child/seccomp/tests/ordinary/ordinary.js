// What Node programs do every day: files, processes, sockets, workers.

const fs = require("fs");
const net = require("net");
const { execSync } = require("child_process");
const { Worker } = require("worker_threads");

fs.mkdirSync("directory/below", { recursive: true });
fs.writeFileSync("directory/file", "content");
fs.chmodSync("directory/file", 0o600);
console.log(String(fs.readFileSync("directory/file")), String(execSync("echo sub")));

const server = net.createServer((socket) => socket.end("tcp"));
server.listen(0, "127.0.0.1", () => {
  net.connect(server.address().port, "127.0.0.1").on("data", (data) => {
    console.log(String(data));
    server.close();
    new Worker("console.log('worker')", { eval: true });
  });
});
