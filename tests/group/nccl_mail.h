/// @file Messages between two ranks of a group that reaches devices, from and to memory of a device or the host.
#pragma once

#include "tests/group/nccl_ranks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace zero::test {

/// Where the two ranks' memory lies.
struct MailPlaces {
  bool sender_on_device;
  bool receiver_on_device;
};
inline constexpr MailPlaces kAllMailPlaces[] = {{true, true}, {true, false}, {false, true}, {false, false}};

/// What the message of some number holds, made eight bytes at a time: with sanitizers each access costs.
inline Bytes mail_bytes(int64_t from, int64_t to, int64_t number, int64_t nbytes) {
  std::vector<uint64_t> words(static_cast<size_t>((nbytes + 7) / 8));
  auto state = static_cast<uint64_t>((from * 64 + to) * 1024 + number) * 0x9e3779b97f4a7c15U + 1;
  for (uint64_t &word : words) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    word = state ^ (state >> 32);
  }
  Bytes bytes(static_cast<size_t>(nbytes));
  if (nbytes > 0) std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

/// Memory of one end of a message.
class MailMemory {
 public:
  MailMemory(DeviceCases &device, bool on_device, const Bytes &bytes)
      : memory_(on_device ? static_cast<CaseMemory &>(device) : host_memory()),
        nbytes_(static_cast<int64_t>(bytes.size())),
        data_(memory_.alloc(std::max<int64_t>(nbytes_, 1))) {
    if (nbytes_ > 0) memory_.write(data_, bytes.data(), nbytes_);
  }
  MailMemory(const MailMemory &) = delete;
  ~MailMemory() { memory_.free(data_, std::max<int64_t>(nbytes_, 1)); }

  void *data() const { return data_; }
  bool holds(const Bytes &wanted) const {
    Bytes got(static_cast<size_t>(nbytes_));
    if (nbytes_ > 0) memory_.read(got.data(), data_, nbytes_);
    return got == wanted;
  }

 private:
  CaseMemory &memory_;
  const int64_t nbytes_;
  void *const data_;
};

/// One message under way, either end.
class Mail {
 public:
  static constexpr unsigned char kUntouched = 0xa5;

  static std::unique_ptr<Mail> send(Group &group, DeviceCases &device, int64_t to, int64_t number, int64_t nbytes, bool on_device) {
    auto mail = std::make_unique<Mail>(device, mail_bytes(group.rank(), to, number, nbytes), on_device, nullptr);
    mail->queue_ = group.send_queue(to);
    mail->operation_ = mail->queue_->submit(group.send(mail->memory_.data(), nbytes, DType::u8, to));
    return mail;
  }
  static std::unique_ptr<Mail> recv(Group &group, DeviceCases &device, int64_t from, int64_t number, int64_t nbytes, bool on_device) {
    const Bytes untouched(static_cast<size_t>(nbytes), kUntouched);
    auto mail = std::make_unique<Mail>(device, mail_bytes(from, group.rank(), number, nbytes), on_device, &untouched);
    mail->queue_ = group.recv_queue(from);
    mail->operation_ = mail->queue_->submit(group.recv(mail->memory_.data(), nbytes, DType::u8, from));
    return mail;
  }
  Mail(DeviceCases &device, Bytes wanted, bool on_device, const Bytes *before)
      : wanted_(std::move(wanted)), memory_(device, on_device, before != nullptr ? *before : wanted_) {}

  /// True when it has ended.
  bool progress() {
    queue_->progress();
    return operation_->done();
  }
  const Status &status() const { return operation_->status(); }
  bool arrived() const { return memory_.holds(wanted_); }
  bool untouched() const { return memory_.holds(Bytes(wanted_.size(), kUntouched)); }

 private:
  const Bytes wanted_;
  MailMemory memory_;
  std::shared_ptr<OperationQueue> queue_;
  std::shared_ptr<Operation> operation_;
};

using Mails = std::vector<std::unique_ptr<Mail>>;

/// Until all have ended; `beside` is called between looks.
template <class Beside>
void finish_mails(const Mails &mails, Beside beside) {
  Backoff backoff;
  for (bool all = false; !all;) {
    all = beside();
    for (const std::unique_ptr<Mail> &mail : mails) all = mail->progress() && all;
    if (!all) backoff.pause();
  }
}

inline void expect_mails(const Mails &mails, Report *report) {
  for (const std::unique_ptr<Mail> &mail : mails) {
    report->expect(mail->status().ok(), mail->status().text());
    report->expect(mail->arrived(), "wrong bytes in a message");
  }
}

}  // namespace zero::test
