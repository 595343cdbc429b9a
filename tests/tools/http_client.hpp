// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/// As much of an HTTP client as a test needs: bytes out, bytes in.
namespace http {

inline int open_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

inline bool connect(int fd, std::uint16_t port, const char* address = "127.0.0.1") {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, address, &to.sin_addr);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

/// A connection; -1 where it is refused.
inline int connect(std::uint16_t port, const char* address = "127.0.0.1") {
  const int fd = open_socket();
  if (connect(fd, port, address)) return fd;
  close(fd);
  return -1;
}

inline void say(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

/// Everything up to the end of the connection, which it closes.
inline std::string answer(int fd) {
  std::string r;
  char piece[4096];
  for (ssize_t n = recv(fd, piece, sizeof piece, 0); n > 0; n = recv(fd, piece, sizeof piece, 0))
    r.append(piece, static_cast<std::size_t>(n));
  close(fd);
  return r;
}

inline std::string ask(std::uint16_t port, const std::string& request) {
  const int fd = connect(port);
  if (fd < 0) return "refused";
  say(fd, request);
  return answer(fd);
}

inline std::string get(std::uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

/// What follows the headers.
inline std::string body(const std::string& response) {
  const auto end = response.find("\r\n\r\n");
  return end == std::string::npos ? std::string() : response.substr(end + 4);
}

}  // namespace http
