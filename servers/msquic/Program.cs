// The bodies of servers/README.md by Kestrel: HTTP/3 on the UDP port, HTTP/2 and HTTP/1.1 over TLS on the
// TCP port of the same number.

using System.Net;
using System.Net.Quic;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using Microsoft.AspNetCore.Server.Kestrel.Core;

if (!QuicListener.IsSupported)
{
    Console.Error.WriteLine("no QUIC: install libmsquic");
    return 1;
}

static string Variable(string name) =>
    Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException($"{name} is not set");

var hello = Encoding.ASCII.GetBytes("Hello, World!\n");
var bodies = new Dictionary<string, byte[]> { ["/"] = hello, ["/empty"] = [] };
foreach (var (path, length) in new[] { ("/1k", 1 << 10), ("/16k", 1 << 14), ("/1m", 1 << 20) })
{
    var body = new byte[length];
    Array.Fill(body, (byte)'x');
    bodies[path] = body;
}

var builder = WebApplication.CreateBuilder(args);
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel =>
{
    kestrel.AddServerHeader = false;
    kestrel.Limits.MaxRequestBodySize = null;
    var certificate = X509Certificate2.CreateFromPemFile(Variable("CERT"), Variable("KEY"));
    kestrel.Listen(IPAddress.Loopback, int.Parse(Variable("HTTPS_PORT")), listener =>
    {
        listener.Protocols = HttpProtocols.Http1AndHttp2AndHttp3;
        listener.UseHttps(certificate);
    });
});

var app = builder.Build();
app.Run(async context =>
{
    var (request, response) = (context.Request, context.Response);
    if (request.Path == "/upload" && HttpMethods.IsPost(request.Method))
    {
        await request.Body.CopyToAsync(Stream.Null);
        await Answer(response, 200, hello, true);
        return;
    }
    var found = bodies.TryGetValue(request.Path.Value ?? "", out var body);
    await Answer(response, found ? 200 : 404, body ?? [], !HttpMethods.IsHead(request.Method));
});
app.Run();
return 0;

static async Task Answer(HttpResponse response, int status, byte[] body, bool send)
{
    response.StatusCode = status;
    response.ContentType = "text/plain";
    response.ContentLength = body.Length;
    if (send && body.Length > 0)
    {
        await response.Body.WriteAsync(body);
    }
}
