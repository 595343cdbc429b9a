// SPDX-License-Identifier: Apache-2.0
#include "metrics_server.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool {
namespace {

struct FreeBuffer {
  void operator()(evbuffer* b) const { evbuffer_free(b); }
};

void reply(evhttp_request* request, int code, const char* reason, const char* type, const std::string& body) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", type);
  evhttp_add_header(headers, "Cache-Control", "no-store");
  const std::unique_ptr<evbuffer, FreeBuffer> out(evbuffer_new());
  if (!out || evbuffer_add(out.get(), body.data(), body.size()) != 0) throw std::bad_alloc();
  evhttp_send_reply(request, code, reason, out.get());
}

}  // namespace

struct MetricsServer::State {
  struct FreeServer {
    void operator()(evhttp* s) const { evhttp_free(s); }
  };

  EventLoop& loop;
  std::function<std::string()> text;
  std::unique_ptr<evhttp, FreeServer> server;
  evhttp_bound_socket* socket = nullptr;

  static void metrics(evhttp_request* request, void* self) {
    auto& s = *static_cast<State*>(self);
    s.loop.guarded([&] { reply(request, HTTP_OK, "OK", "text/plain; version=0.0.4; charset=utf-8", s.text()); });
  }
  static void other(evhttp_request* request, void* self) {
    static_cast<State*>(self)->loop.guarded(
        [&] { reply(request, HTTP_NOTFOUND, "Not Found", "text/plain; charset=utf-8", "see /metrics\n"); });
  }
  /// Out of file descriptors, most likely. The connection that waits would wake the loop at once, again and again.
  static void cannot_accept(evconnlistener* listener, void*) {
    evconnlistener_disable(listener);
    const timeval second{.tv_sec = 1, .tv_usec = 0};
    event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, accept_again, listener, &second);
  }
  static void accept_again(int, short, void* listener) {
    evconnlistener_enable(static_cast<evconnlistener*>(listener));
  }
};

MetricsServer::MetricsServer(EventLoop& loop, std::uint16_t port, std::function<std::string()> text)
    : state_(new State{.loop = loop, .text = std::move(text), .server = {}}) {
  State& s = *state_;
  s.server.reset(evhttp_new(loop.base()));
  if (!s.server) throw std::bad_alloc();
  evhttp* const server = s.server.get();
  evhttp_set_allowed_methods(server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_max_headers_size(server, 16 << 10);
  evhttp_set_max_body_size(server, 0);
  evhttp_set_timeout(server, 30);  // of a connection that says nothing: longer than a usual pause between scrapes
  evhttp_set_cb(server, "/metrics", State::metrics, &s);
  evhttp_set_gencb(server, State::other, &s);
  errno = 0;
  s.socket = evhttp_bind_socket_with_handle(server, "127.0.0.1", port);
  if (s.socket == nullptr)
    throw Error("--port", "cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + std::strerror(errno),
                "choose another port, or 0 for any that is free");
  evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(s.socket), State::cannot_accept);
}

MetricsServer::~MetricsServer() = default;

std::uint16_t MetricsServer::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(evhttp_bound_socket_get_fd(state_->socket), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

}  // namespace vlmest::tool
