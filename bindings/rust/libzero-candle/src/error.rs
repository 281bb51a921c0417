//! Errors of libzero as those of candle.

/// Passes a result of libzero on as one of candle, with libzero's text.
pub(crate) trait OrCandle<T> {
    fn or_candle(self) -> candle_core::Result<T>;
}

impl<T> OrCandle<T> for libzero::Result<T> {
    fn or_candle(self) -> candle_core::Result<T> {
        self.map_err(candle_core::Error::wrap)
    }
}
